"""All that is mutable along one path: what was decided, what is left of the budget, what was noted."""
