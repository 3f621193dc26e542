"""Assistants that write code, served over the Model Context Protocol."""
