"""Measurements: what a run costs on real code, how that grows, and how others do on the same code."""
