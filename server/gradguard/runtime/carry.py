"""Which line carries a tensor with its graph from one pass of a loop into the next."""

from __future__ import annotations

import ast

from gradguard.runtime import lines
from gradguard.runtime.frames import Place, Site
from gradguard.runtime.graph import BackwardCall, NodeRecord


def cause_of(old: NodeRecord, new: NodeRecord | None, call: BackwardCall, made: NodeRecord) -> Place | None:
    """The line to repair when backward runs into the freed graph of an earlier pass; None if nothing is carried.

    `made` is where the tensor came from whose graph is freed, be it written since. A tensor computed before the loop is
    its own cause. Inside the loop the cause is the outermost statement that
    both reads and binds the carried name, else the line that computed the old tensor.
    """
    if not _same_backward(old, call):
        return None
    before, here, level = _parting(old.site, call.site)
    if before is None or here is None or not _in_same_loop(before, here):
        return _parting(made.site, call.site)[0] or made.site.inner
    return _carrying(new or old, level) or old.site.inner


def carried_from(old: NodeRecord, call: BackwardCall) -> Place | None:
    """The statement of the loop that carries a state into the next pass; None for a tensor that is merely reused."""
    if not _same_backward(old, call):
        return None
    before, here, level = _parting(old.site, call.site)
    if before is None or here is None or not _in_same_loop(before, here):
        return None
    return _carrying(old, level)


def receiving(site: Site) -> Place | None:
    """Where what an op at a site has computed is bound: outside the functions that merely return it."""
    for place in site.places:
        statement = lines.file(place.path).statement(place.line)
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
            return place
        if not isinstance(statement, ast.Return):
            break
    return site.inner


def _same_backward(old: NodeRecord, call: BackwardCall) -> bool:
    return old.call is not None and old.call.site.inner == call.site.inner and call.site.inner is not None


def _common_level(first: Site, second: Site) -> int | None:
    """How many frames from the outside both chains have gone when their instructions part; None if they do not share."""
    level = None
    for number, (a, b) in enumerate(zip(reversed(first.places), reversed(second.places))):
        if a.code is not b.code:
            break
        level = number
        if a.instruction != b.instruction:
            break
    return level


def _parting(first: Site, second: Site) -> tuple[Place | None, Place | None, int]:
    """The places at which two chains part, and how many frames from the outside; no places if they share none."""
    level = _common_level(first, second)
    if level is None:
        return None, None, 0
    return first.places[-1 - level], second.places[-1 - level], level


def _in_same_loop(before: Place, here: Place) -> bool:
    return any(start <= before.line <= end for start, end in lines.loops_around(here))


def _carrying(record: NodeRecord, level: int) -> Place | None:
    inwards = list(reversed(record.site.places))[level:]
    for place in inwards:
        if lines.carried_names(lines.file(place.path).statement(place.line)):
            return place
    return None
