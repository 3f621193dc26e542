"""gradguard: finds autograd mistakes in PyTorch code while it is typed."""

__version__ = "0.1.0"
