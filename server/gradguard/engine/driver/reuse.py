"""What of an earlier analysis still stands after an edit.

A statement whose text did not change keeps its nodes from version to version, so that identity of nodes tells
what changed. The answer of a function's entry depends on the functions it entered and on the globals it read.
The first are the same if their nodes are still there. For the second, what the top level makes of its names is
compared with what it made before: as values, so that an edit of one definition costs nobody who does not use it.
A function that was not entered counts by its `def` line alone.

    LIMIT = 3              an entry that never read LIMIT stands when this line is edited
    def helper(x): ...     one that passes `helper` on without calling it stands while only its body changes
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from gradguard.engine.domain.keys import Key
from gradguard.engine.domain.tensors import Place, Tensor
from gradguard.engine.domain.values import (
    EVERYTHING,
    ClassV,
    External,
    Frame,
    FunctionV,
    LazyV,
    Namespace,
    TorchName,
)
from gradguard.engine.domain.versions import VersionText, VersionV
from gradguard.source.nodes import walk

Surroundings = tuple[object, ...]


class Comparison:
    """Whether the top levels of two versions give names the same values.

    Values are the same if an entry cannot tell them apart: equal constants, and objects whose parts are the same
    and which are shared in the same way. Numbers that only tell objects apart may differ. In doubt they are not.
    """

    def __init__(
        self,
        old: Frame,
        new: Frame,
        imported: dict[str, Namespace],
        now_imported: dict[str, Namespace],
        present: frozenset[ast.AST],
    ) -> None:
        """`present`: the functions that are there now."""
        self._old, self._new = old.variables, new.variables
        self._homes = old.namespace, new.namespace
        self._imported, self._now_imported = imported, now_imported
        self._present = present
        self._pairs: dict[int, object] = {}
        self._taken: set[int] = set()
        self._numbers: dict[object, object] = {}
        self._known: dict[str, bool] = {}
        self._tried: list[tuple[int, int]] = []
        self._pair(old.namespace, new.namespace)
        self._pair(old.namespace.variables, new.namespace.variables)
        self._pair(old, new)

    def stands(self, names: Iterable[str]) -> bool:
        """Whether all of the names have the values they had."""
        return all(self._name(name) for name in names)

    def imports(self) -> bool:
        """Whether imported files that the top level needs are as they were, and names come with `*` from the same."""
        old, new = self._imported, self._now_imported
        return (
            list(old) == list(new)
            and all(self._same(old[path], new[path]) for path in old)
            and [one.path for one in self._homes[0].stars] == [one.path for one in self._homes[1].stars]
        )

    def _name(self, name: str) -> bool:
        known = self._known.get(name)
        if known is None:
            if name == EVERYTHING:
                both = dict.fromkeys([*dict.keys(self._old), *dict.keys(self._new)])
                known = all(self._name(one) for one in both)
            else:
                missing = object()
                known = self._same(dict.get(self._old, name, missing), dict.get(self._new, name, missing))
            self._known[name] = known
        return known

    def _same(self, old: object, new: object) -> bool:
        self._tried = []
        stack = [(old, new)]
        while stack:
            one, other = stack.pop()
            if one is other:
                continue
            parts = self._parts(one, other)
            if parts is None:
                # What was taken for the same on the way rests on this.
                for mine, theirs in self._tried:
                    del self._pairs[mine]
                    self._taken.discard(theirs)
                return False
            stack.extend(parts)
        return True

    def _parts(self, old: Any, new: Any) -> Iterable[tuple[object, object]] | None:
        """What must be the same for the two to be; None where they are not."""
        kind = type(old)
        if kind is not type(new):
            return None
        if kind is LazyV:
            # Nobody had asked for it yet, and its file is the same.
            return () if old.home.path == new.home.path else None
        if kind in _CONSTANTS:
            return () if old == new and (kind is not float or repr(old) == repr(new)) else None
        if isinstance(old, ast.AST):
            return None
        if id(old) in self._pairs:
            return () if self._pairs[id(old)] is new else None
        if id(new) in self._taken:
            return None
        if kind is tuple:
            if len(old) != len(new):
                return None
            if old[:1] == new[:1] == ("#",):
                return zip(old[2:], new[2:]) if self._number(old[1], new[1]) else None
            return zip(old, new)
        if kind is Namespace and old.path not in self._imported:
            # Nobody had asked for anything in it yet, and its file is the same.
            return () if old.path == new.path else None
        self._pair(old, new)
        self._tried.append((id(old), id(new)))
        if kind is list:
            return zip(old, new) if len(old) == len(new) else None
        if kind is Key:
            return ((old.parts, new.parts),)
        if isinstance(old, dict):
            if len(old) != len(new):
                return None
            return [*zip(dict.keys(old), dict.keys(new)), *zip(dict.values(old), dict.values(new))]
        if kind in (set, frozenset):
            return () if old == new else None
        if kind is Place:
            return ((old.path, new.path), (old.node, new.node))
        if kind is FunctionV and old.node is not new.node and not self._edited(old.node, new.node):
            return None
        if kind is Tensor and not self._number(old.number, new.number):
            return None
        fields = _fields(kind)
        return None if fields is None else [(getattr(old, name), getattr(new, name)) for name in fields]

    def _edited(self, old: ast.AST, new: ast.AST) -> bool:
        """Whether a function is another only in its body: no answer that entered it stands anyway.

        One that is still there was exchanged for another, which such an answer would not show.
        """
        if isinstance(old, ast.Lambda) or isinstance(new, ast.Lambda) or old in self._present:
            return False
        return _token(old) == _token(new)  # type: ignore[arg-type]

    def _pair(self, old: object, new: object) -> None:
        self._pairs[id(old)] = new
        self._taken.add(id(new))

    def _number(self, old: object, new: object) -> bool:
        """Numbers that tell objects apart: any will do, as long as the same ones stand for each other."""
        known = self._numbers.setdefault(("old", old), new)
        back = self._numbers.setdefault(("new", new), old)
        return known == new and back == old


_CONSTANTS = frozenset(
    {
        type(None),
        bool,
        int,
        float,
        complex,
        str,
        bytes,
        type(Ellipsis),
        TorchName,
        External,
        VersionText,
        VersionV,
    }
)
_LEFT_OUT = {
    FunctionV: ("node",),
    ClassV: ("node", "order", "kind"),
    Tensor: ("number",),
    Namespace: ("order", "absent"),
}
"""Compared in their own way, or worked out from the rest."""


def _fields(kind: type) -> tuple[str, ...] | None:
    if not hasattr(kind, "__slots__") or not kind.__module__.startswith("gradguard.engine."):
        return None
    slots = [name for base in kind.__mro__ for name in getattr(base, "__slots__", ())]
    left_out = _LEFT_OUT.get(kind, ())
    return tuple(name for name in slots if name not in left_out)


def surroundings(body: Iterable[ast.stmt]) -> Surroundings:
    """One token for each statement; equal where they give the same names and objects."""
    return tuple(_token(statement) for statement in body)


def bodies(body: Iterable[ast.stmt]) -> tuple[ast.AST, ...]:
    """The functions of whose text `surroundings` takes the head alone, in order."""
    found: list[ast.AST] = []
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.append(statement)
        elif isinstance(statement, ast.ClassDef):
            found += bodies(statement.body)
    return tuple(found)


def exchanged(old: Iterable[ast.AST], new: Iterable[ast.AST], present: frozenset[ast.AST]) -> bool:
    """Whether a function that is still there stands in the place of another with the same head."""
    return any(one is not other and one in present for one, other in zip(old, new))


def _token(statement: ast.stmt) -> object:
    if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return statement
    known: object = getattr(statement, "_gradguard_token", None)
    if known is None:
        try:
            known = _class(statement) if isinstance(statement, ast.ClassDef) else _head(statement)
        except RecursionError:
            known = statement  # like no other
        statement._gradguard_token = known  # type: ignore[union-attr]
    return known


def _class(statement: ast.ClassDef) -> object:
    parts = [ast.dump(base) for base in (*statement.bases, *statement.decorator_list)]
    parts += [ast.dump(keyword) for keyword in statement.keywords]
    inner = tuple(_token(part) for part in statement.body)
    return ("class", statement.name, tuple(parts), inner)


def _head(function: ast.FunctionDef | ast.AsyncFunctionDef) -> object:
    decorators = tuple(ast.dump(one) for one in function.decorator_list)
    return ("def", function.name, ast.dump(function.args), decorators)


def functions_of(tree: ast.Module) -> frozenset[ast.AST]:
    """Every function and lambda of a file."""
    return frozenset().union(*(_functions_in(statement) for statement in tree.body))


def _functions_in(statement: ast.stmt) -> frozenset[ast.AST]:
    known: frozenset[ast.AST] | None = getattr(statement, "_gradguard_functions", None)
    if known is None:
        known = frozenset(
            node
            for node in walk(statement)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        )
        statement._gradguard_functions = known  # type: ignore[attr-defined]
    return known
