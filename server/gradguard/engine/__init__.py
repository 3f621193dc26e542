"""The tape engine: runs abstract programs on an abstract autograd machine."""

from gradguard.engine.driver.entry import Analysis, SharingNotNoted, analyse

__all__ = ["Analysis", "SharingNotNoted", "analyse"]
