"""Frameworks: who calls a program's hooks, with what, how often, in which mode, and what becomes of the result.

One file a framework. `schedule` has the words in which each says it.
"""

from gradguard.engine.models.frameworks import lightning, transformers

SCHEDULES = (lightning.MODULE, transformers.TRAINER)
"""Of the classes of frameworks that a program derives its own from."""
