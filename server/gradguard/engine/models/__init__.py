"""What torch, the standard library and unknown objects do."""
