"""Tests of gradguard; `tests.oracle` is the judge they all use."""
