"""The interpreter and the models, put together."""

from __future__ import annotations

from gradguard.engine.models.library import Library
from gradguard.engine.python.interpreter import Python
from gradguard.engine.state.run import Ports

PORTS = Ports(Python(), Library())
