"""What of a file is run, along which paths, with which budget, and what is kept over edits."""
