"""What a program is made of on the tape: tensors and nodes, abstract values, scopes, loops, events."""
