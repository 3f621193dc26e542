"""All that is mutable along one path: the branch decisions, the rest of the budget, the notes."""
