"""The tape engine: runs abstract programs on an abstract autograd machine."""

from gradguard.engine.driver.entry import Analysis, analyse

__all__ = ["Analysis", "analyse"]
