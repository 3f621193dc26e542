"""What is noticed while a program runs: who shares memory, what escapes, what the host reads, how long graphs live."""
