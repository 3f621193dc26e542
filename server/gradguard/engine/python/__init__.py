"""Runs Python on abstract values."""
