"""Findings as people read them in a terminal: the one form that checks and runs share."""
