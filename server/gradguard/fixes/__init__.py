"""Plans of fixes made into edits. The only layer that loads libcst, and only when edits are asked for."""
