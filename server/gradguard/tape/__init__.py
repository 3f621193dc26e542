"""The tape engine: runs abstract programs on an abstract autograd machine."""

from gradguard.tape.entry import Analysis, SharingNotNoted, analyse

__all__ = ["Analysis", "SharingNotNoted", "analyse"]
