"""`gradguard fleet`: many packages and repositories at once, on Ray Data."""
