"""The one dispatch by which statements, expressions and calls reach one another, and the models of torch reach all three."""

from __future__ import annotations

from gradguard.engine.python import calls, expressions, statements


class Python:
    """Runs Python on abstract values; see `state.run.Interpreter`."""

    evaluate = staticmethod(expressions.evaluate)
    execute = staticmethod(statements.execute_block)
    execute_pieces = staticmethod(statements.execute_pieces)
    call = staticmethod(calls.call_value)
