"""`match` patterns."""

from __future__ import annotations

import ast

from gradguard.engine.domain.conditions import key_of
from gradguard.engine.domain.tokens import token
from gradguard.engine.domain.values import DictV, Frame, Instance, ListV, Sym, TupleV, Value
from gradguard.engine.python.instances import instance_of
from gradguard.engine.python.names import assign_name
from gradguard.engine.state.run import Run


def matches(run: Run, frame: Frame, subject: Value, pattern: ast.pattern) -> bool:
    """Whether the pattern takes the subject on this path; names it captures are bound."""
    if isinstance(pattern, ast.MatchAs):
        if pattern.pattern is not None and not matches(run, frame, subject, pattern.pattern):
            return False
        if pattern.name is not None:
            assign_name(run, frame, pattern.name, subject, pattern)
        return True
    if isinstance(pattern, ast.MatchOr):
        return any(matches(run, frame, subject, part) for part in pattern.patterns)
    if isinstance(pattern, (ast.MatchValue, ast.MatchSingleton)):
        wanted = (
            run.python.evaluate(run, frame, pattern.value)
            if isinstance(pattern, ast.MatchValue)
            else pattern.value
        )
        return _equal(run, subject, wanted)
    if isinstance(pattern, ast.MatchSequence):
        return _sequence(run, frame, subject, pattern)
    if isinstance(pattern, ast.MatchMapping):
        return _mapping(run, frame, subject, pattern)
    if isinstance(pattern, ast.MatchClass):
        return _class(run, frame, subject, pattern)
    return run.oracle.decide(("match", key_of(subject), id(pattern)), at=pattern)


def _equal(run: Run, subject: Value, wanted: Value) -> bool:
    if isinstance(subject, Sym):
        return run.oracle.decide(("cmp", "Eq", subject.key, key_of(wanted)))
    return bool(key_of(subject) == key_of(wanted))


def _sequence(run: Run, frame: Frame, subject: Value, pattern: ast.MatchSequence) -> bool:
    starred = any(isinstance(part, ast.MatchStar) for part in pattern.patterns)
    if isinstance(subject, (ListV, TupleV)) and not subject.open and not starred:
        if len(subject.items) != len(pattern.patterns):
            return False
        return all(
            matches(run, frame, item, part)
            for item, part in zip(subject.items, pattern.patterns, strict=True)
        )
    if not isinstance(subject, (ListV, TupleV, Sym)):
        return False
    if not run.oracle.decide(("match", key_of(subject), pattern.lineno), at=pattern):
        return False
    for index, part in enumerate(pattern.patterns):
        if isinstance(part, ast.MatchStar):
            if part.name is not None:
                frame.variables[part.name] = ListV(open=True)
            continue
        item = (
            subject.items[index]
            if isinstance(subject, (ListV, TupleV)) and index < len(subject.items)
            else run.fresh()
        )
        matches(run, frame, item, part)
    return True


def _mapping(run: Run, frame: Frame, subject: Value, pattern: ast.MatchMapping) -> bool:

    for key, part in zip(pattern.keys, pattern.patterns, strict=True):
        wanted = run.python.evaluate(run, frame, key)
        if isinstance(subject, DictV):
            held = subject.items.get(token(wanted))
            if held is None and not subject.open:
                return False
            item = held[1] if held is not None else run.fresh()
        else:
            item = run.fresh()
        if not matches(run, frame, item, part):
            return False
    return isinstance(subject, DictV) or run.oracle.decide(
        ("match", key_of(subject), pattern.lineno), at=pattern
    )


def _class(run: Run, frame: Frame, subject: Value, pattern: ast.MatchClass) -> bool:

    cls = run.python.evaluate(run, frame, pattern.cls)
    is_one = instance_of(subject, cls)
    if is_one is None:
        is_one = run.oracle.decide(("isinstance", key_of(subject), key_of(cls)), at=pattern)
    if not is_one:
        return False
    for name, part in zip(pattern.kwd_attrs, pattern.kwd_patterns, strict=True):
        value = subject.attributes.get(name, run.fresh()) if isinstance(subject, Instance) else run.fresh()
        if not matches(run, frame, value, part):
            return False
    return True
