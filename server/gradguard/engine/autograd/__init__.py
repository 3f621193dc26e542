"""The autograd machine: recording, saving, writing, versions, where elements lie, walking backward."""
