"""PyTorch-Ignite: an `Engine` calls a step function, and handlers after it."""

from __future__ import annotations

import ast

from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.values import External, Frame, Instance, ListV, NativeV, TorchName, TupleV, Value
from gradguard.engine.models.registry import Registry
from gradguard.engine.observe import lifetime
from gradguard.engine.python.calls import call_value
from gradguard.engine.python.iteration import UNKNOWN_ITEMS, iterate
from gradguard.engine.state.run import Run

MODELS = Registry()


@MODELS.external_function("ignite.engine.Engine", "ignite.engine.engine.Engine")
def _engine(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    state = Instance(TorchName("ignite.engine.State"), made=call.place)
    made = Instance(TorchName("ignite.engine.Engine"), made=call.place)
    made.attributes = {"process": call.get(0, "process_function"), "state": state, "handlers": ListV()}
    return made


def _on(run: Run, frame: Frame, engine: Instance, call: Call, node: ast.AST) -> Value:
    """`@engine.on(event)`."""
    event = call.get(0, "event_name")

    def register(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
        _handlers(engine).append(TupleV((event, call.get(0, "handler"))))
        return call.get(0, "handler")

    return NativeV(register, "handler")


def _add(run: Run, frame: Frame, engine: Instance, call: Call, node: ast.AST) -> Value:
    event, handler = call.get(0, "event_name"), call.get(1, "handler")
    _handlers(engine).append(TupleV((event, handler, *call.args[2:])))
    return run.fresh()


def _handlers(engine: Instance) -> list[Value]:
    held = engine.attributes["handlers"]
    assert isinstance(held, ListV)
    return held.items


def _tell(run: Run, frame: Frame, engine: Instance, once: bool, call: Call, node: ast.AST) -> None:
    """Call the handlers: those of a step after each, all others when the steps are over."""
    for entry in list(_handlers(engine)):
        if isinstance(entry, TupleV):
            event, handler, *more = entry.items
            path = event.path if isinstance(event, External) else "ITERATION"
            if ("ITERATION" in path) is not once:
                given = Call([engine, *more], {}, call.place, [None] * (1 + len(more)), {})
                call_value(run, frame, handler, given, node)


def _runs(run: Run, frame: Frame, engine: Instance, call: Call, node: ast.AST) -> Value:
    """`engine.run(data)`: the step function of each batch; what it returns is the output until the next step."""
    state = engine.attributes["state"]
    assert isinstance(state, Instance)
    source = iterate(run, frame, call.get(0, "data"), node)
    loop = run.loop(run.place(frame, node), "for")
    loop.over, loop.exact, loop.long = "data", False, True
    run.loops.append(loop)
    try:
        for count, batch in enumerate(source.source):
            if count >= UNKNOWN_ITEMS:
                break
            loop.began = run.tick()
            state.attributes["batch"] = batch
            given = Call([engine, batch], {}, call.place, [None, None], {})
            output = call_value(run, frame, engine.attributes["process"], given, node)
            old, state.attributes["output"] = state.attributes.get("output"), output
            if old is not None:
                lifetime.replaced(run, frame, old, output)
            _tell(run, frame, engine, False, call, node)
            lifetime.iteration_ends(run, frame, loop)
            loop.iteration += 1
    finally:
        run.loops.remove(loop)
        lifetime.loop_ends(run, frame, loop)
    _tell(run, frame, engine, True, call, node)
    return state


MODELS.methods_of("Engine", {"run": _runs, "on": _on, "add_event_handler": _add})
