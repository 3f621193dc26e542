"""Models of torch's and other libraries' objects, one file a subject."""
