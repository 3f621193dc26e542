"""gradguard: finds autograd mistakes in PyTorch code while it is typed."""

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """`gradguard.monitor` imports torch only when it is used."""
    if name == "monitor":
        from gradguard.runtime.monitor import monitor

        return monitor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_ipython_extension(shell: object) -> None:
    """`%load_ext gradguard` in a notebook."""
    from gradguard.runtime.notebook import load

    load(shell)
