"""Imports from the workspace: the top level of a module runs when one of its names is first asked for.

Python runs it at the import statement. But a library's modules import one another, all of them together are far
more than the file that is checked, and nearly all they do is to define things, which may as well happen later.
It happens as if at the statement: outside every loop and grad mode, with numbers of the program order that were
put aside for it. Only a module that calls torch at its top level, as to switch grad mode, runs at once. Of the
others, what only gives names their values waits in its turn until somebody reads one of them, see `lazy`.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable

from gradguard.engine.domain.modes import Modes
from gradguard.engine.domain.values import (
    MISSING,
    External,
    Frame,
    ImportV,
    LazyV,
    ModuleV,
    Namespace,
    TorchName,
    Value,
)
from gradguard.engine.python import lazy, recovery
from gradguard.engine.python.names import assign_name
from gradguard.engine.state import faults
from gradguard.engine.state.path import BudgetExceeded, PathEnd, PyRaise
from gradguard.engine.state.run import Run

_CALLS_TORCH = re.compile(r"^(?:torch\.[\w.]+|set_grad_enabled|inference_mode)\(", re.MULTILINE)

_MAY_CALL_TORCH = ("\ntorch.", "\nset_grad_enabled(", "\ninference_mode(")
"""The beginnings of what the pattern finds, but for the first line: most texts have none, which is seen much faster."""

_TAKES_ALL = re.compile(r"^\s*from .* import \*", re.MULTILINE)

_WORDS = re.compile(r"\w+")

_BUILTINS = frozenset(dir(builtins))

MAX_NESTED = 12
"""Modules that may be loading at once, each for the one before."""
MAX_MAKING = 24
"""The same for definitions and modules together."""
CHARACTERS_A_STEP = 25
"""Text of a module that takes as long to parse as a step does."""
CHARACTERS_A_WORD = 5
"""The least of a usual text for each name and number; where they stand closer, each further one counts as a step."""
MAX_STARS = 32
"""Modules that are looked through for a name that came with `*`."""


def import_names(run: Run, frame: Frame, node: ast.Import) -> None:
    """`import a.b as c`."""
    for alias in node.names:
        full = alias.name
        module = _module(run, full, 0, frame)
        if alias.asname is not None:
            assign_name(run, frame, alias.asname, module, node)
        else:
            top = full.partition(".")[0]
            assign_name(run, frame, top, _module(run, top, 0, frame), node)


def import_from(run: Run, frame: Frame, node: ast.ImportFrom) -> None:
    """`from a import b as c`."""
    home = _module(run, node.module or "", node.level, frame)
    at_top = frame.variables is frame.namespace.variables
    for alias in node.names:
        if alias.name == "*":
            if isinstance(home, ModuleV):
                frame.namespace.stars.append(home.namespace)
            continue
        value: Value
        if isinstance(home, ModuleV):
            wanted = ImportV(home.namespace, alias.name, node.module or "", node.level, frame.namespace)
            value = wanted if at_top else _imported(run, wanted)
        elif isinstance(home, TorchName):
            value = TorchName(f"{home.path}.{alias.name}")
        elif not node.module:
            found = _namespace(run, alias.name, node.level, frame.namespace)
            value = ModuleV(found) if found is not None else run.fresh(text=alias.name)
        else:
            value = External(f"{node.module}.{alias.name}")
        assign_name(run, frame, alias.asname or alias.name, value, node)


STAND_INS = frozenset({ImportV, LazyV})
"""What stands among a namespace's variables for a value that nobody has asked for yet."""


def known(run: Run, variables: dict[str, Value], name: str) -> Value:
    """The value of a variable that is there, after the import or the definition that it may stand for."""
    value = variables[name]
    if type(value) is ImportV:
        value = variables[name] = _imported(run, value)
    elif type(value) is LazyV:
        made = _made(run, value)
        if name not in made:
            return run.fresh(text=name)
        value = variables[name] = made[name]
    return value


def starred(run: Run, namespace: Namespace, name: str) -> Value:
    """What `from module import *` gave this name; a builtin where it gave nothing."""
    found = _starred(run, namespace, name, set())
    return External("builtins." + name) if found is MISSING else found


def member(run: Run, namespace: Namespace, name: str) -> Value:
    """`module.name`: a global of a module, or a module inside a package."""
    found = _member(run, namespace, name, set())
    if found is not MISSING:
        return found
    # A package's own file finds what lies beside it as `.name`.
    inner = _namespace(run, name, 1, namespace) if namespace.path.endswith("__init__.py") else None
    return ModuleV(inner) if inner is not None else run.fresh(text=name)


def loaded(run: Run, namespace: Namespace) -> dict[str, Value]:
    """Globals of a module, its top level having run."""
    if not namespace.ran:
        owner = run.library or run
        if owner.loading >= MAX_NESTED:
            run.limits[_TOO_DEEP] = None
            return namespace.variables
        namespace.ran = True
        _load(owner, namespace)
    _tell(run, namespace)
    run.devices |= namespace.devices
    return namespace.variables


def _tell(run: Run, namespace: Namespace) -> None:
    """Say where a module that is needed was not run to the end."""
    if namespace.partly:
        run.limits[_PARTLY.format(namespace.partly)] = None
    if namespace.fault is not None and namespace.fault not in run.faults:
        run.faults.append(namespace.fault)


def _made(run: Run, waiting: LazyV) -> dict[str, Value]:
    """Values of names that waited, their statements having run; none for those that are just running."""
    if waiting.made is None and not waiting.busy:
        owner = run.library or run
        if owner.making >= MAX_MAKING:
            run.limits[_TOO_DEEP] = None
            return {}
        home = waiting.home
        asked = home.variables.read, home.variables.written
        statements = [statement for _, statement in waiting.statements]
        waiting.busy = True
        try:
            _aside(owner, home, lambda: _execute(owner, home, statements))
        finally:
            waiting.made, waiting.busy = lazy.given(home.variables, waiting), False
            home.variables.read, home.variables.written = asked
            if owner.on_load is not None:
                owner.on_load(waiting, owner.making == 0)
        _tell(run, home)
        run.devices |= home.devices
    return waiting.made or {}


_PARTLY = recovery.PARTLY + ": {}"
_TOO_DEEP = _PARTLY.format(faults.NESTED)


def _imported(run: Run, wanted: ImportV) -> Value:
    wanted.busy = True
    try:
        found = _member(run, wanted.home, wanted.name, set())
    finally:
        wanted.busy = False
    if found is not MISSING:
        return found
    full = f"{wanted.module}.{wanted.name}" if wanted.module else wanted.name
    inner = _namespace(run, full, wanted.level, wanted.asking)
    return ModuleV(inner) if inner is not None else run.fresh(text=wanted.name)


def _member(run: Run, namespace: Namespace, name: str, asked: set[int]) -> Value:
    variables = loaded(run, namespace)
    found = variables.get(name, MISSING)
    if type(found) is ImportV and found.busy:
        # `from . import part` in a package's own file: the name is what is being looked for.
        return MISSING
    return _starred(run, namespace, name, asked) if found is MISSING else known(run, variables, name)


def _starred(run: Run, namespace: Namespace, name: str, asked: set[int]) -> Value:
    if id(namespace) in asked or name.startswith("_") or name in namespace.absent or len(asked) > MAX_STARS:
        return MISSING
    asked.add(id(namespace))
    for star in reversed(namespace.stars):
        if _may_have(run, star, name):
            found = _member(run, star, name, asked)
            if found is not MISSING:
                namespace.variables[name] = found
                return found
    namespace.absent.add(name)
    return MISSING


def _may_have(run: Run, namespace: Namespace, name: str) -> bool:
    text = _text(run, namespace)
    if name in _BUILTINS:
        return re.search(rf"^(?:(?:async )?def|class) {name}\b|^{name} *[:=]", text, re.MULTILINE) is not None
    # What a module takes with `*` in its turn is not in its text.
    return re.search(rf"\b{name}\b", text) is not None or _TAKES_ALL.search(text) is not None


def _module(run: Run, name: str, level: int, frame: Frame) -> Value:
    """The module of that name: of torch, of the workspace, or of a library that is not read."""
    if level == 0 and name.partition(".")[0] == "torch":
        return TorchName(name)
    found = _namespace(run, name, level, frame.namespace)
    return ModuleV(found) if found is not None else External(name)


def _namespace(run: Run, name: str, level: int, asking: Namespace) -> Namespace | None:
    """Globals of a workspace module, one object for each path; None outside the workspace."""
    path = run.files.resolve(name, level, asking.path)
    if path is None or path == run.home:
        return None
    namespace = run.namespaces.get(path)
    if namespace is None:
        namespace = run.namespaces[path] = Namespace(path, path if level else name)
        namespace.variables["__name__"] = namespace.name
        namespace.order = (run.library or run).put_aside()
        if run.library is None and _calls_torch(_text(run, namespace)):
            namespace.ran = True
            _execute(run, namespace, _tree(run, namespace).body)
    return namespace


def _calls_torch(text: str) -> bool:
    """Whether a module calls torch at its top level."""
    begins = _CALLS_TORCH.match(text) is not None
    return begins or (any(one in text for one in _MAY_CALL_TORCH) and _CALLS_TORCH.search(text) is not None)


def _text(run: Run, namespace: Namespace) -> str:
    source = run.files.source(namespace.path)
    return source.text if source is not None else ""


_AROUND = (
    "modes", "loops", "guards", "calls", "functions", "frames", "statement", "trace", "compiled", "depth", "step_site", "expected",
)  # fmt: skip


def _parsing(text: str) -> int:
    """Steps that it takes to parse a text."""
    further = len(_WORDS.findall(text)) - len(text) // CHARACTERS_A_WORD
    return len(text) // CHARACTERS_A_STEP + max(further, 0)


def _load(run: Run, namespace: Namespace) -> None:
    """Run a module's top level as if its import statement had."""

    def body() -> None:
        run.step(_parsing(_text(run, namespace)))
        tree = _tree(run, namespace)
        for index, (statement, waiting) in enumerate(zip(tree.body, lazy.plan(tree))):
            if waiting is None or not lazy.waits(namespace, index, statement, waiting):
                _execute(run, namespace, [statement])

    run.loading += 1
    try:
        _aside(run, namespace, body)
    finally:
        run.loading -= 1
        namespace.variables.begin()
        if run.on_load is not None:
            run.on_load(namespace, run.making == 0)


def _aside(run: Run, namespace: Namespace, body: Callable[[], None]) -> None:
    """Run something of a module's top level where its import statement stands, outside all that runs now."""
    around = {name: getattr(run, name) for name in _AROUND}
    devices, budget = run.devices, run.budget
    inside = run.making > 0 and run.frames[0].namespace is namespace
    run.modes, run.trace, run.statement, run.step_site = Modes(), None, None, None
    run.loops, run.guards, run.calls, run.functions, run.frames = [], [], [], [], []
    run.compiled = run.depth = run.expected = 0
    run.devices, run.budget = set(), run.import_budget
    run.making += 1
    was_elsewhere, run.oracle.elsewhere = run.oracle.elsewhere, True
    was = None if inside else run.go_back(namespace.order)
    try:
        body()
    except (PyRaise, PathEnd):
        pass
    except BudgetExceeded:
        namespace.partly = "a top level needs more steps than the budget allows"
    except RecursionError:
        namespace.partly = faults.NESTED
    finally:
        if was is not None:
            # What waits comes after what has run.
            namespace.order = run.go_on(was), namespace.order[1]
        namespace.devices |= run.devices
        for name, value in around.items():
            setattr(run, name, value)
        run.devices, run.budget = devices, budget
        run.making -= 1
        run.oracle.elsewhere = was_elsewhere


def _execute(run: Run, namespace: Namespace, statements: list[ast.stmt]) -> None:

    saved = run.statement
    run.frames.append(Frame(namespace, namespace.variables))
    try:
        for _ in run.python.execute_pieces(run, run.frames[-1], statements):
            pass
    finally:
        run.frames.pop()
        run.statement = saved


def _tree(run: Run, namespace: Namespace) -> ast.Module:
    source = run.files.source(namespace.path)
    return source.tree if source is not None else ast.Module([], [])
