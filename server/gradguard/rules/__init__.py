"""The rules: each turns one kind of event into findings. One file and one page a rule, of the same name."""
