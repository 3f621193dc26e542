"""Builds the documentation; the texts are in `en/`, `ko/`, the repository's own pages and the pages of the rules."""
