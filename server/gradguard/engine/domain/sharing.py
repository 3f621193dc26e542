"""The alias set of a write: the names and places that lead to the memory which a statement writes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sharing:
    """The alias facts of one writing statement, collected over all of its executions."""

    slots: frozenset[str] = frozenset()
    """Places that lead to the written memory."""
    reasons: frozenset[str] = frozenset()
    """`argument`: a caller passed it. `held`: code that is not read may look at it again. `guarded`: to bind
    its attribute anew runs code of the program, or is refused. `own`: the tensor has attributes that the program
    gave it, which another one lacks. `leaf`: the tensor is one. `no-grad`: written with grad mode off, and it has a history. `hooks`: hooks or a retained gradient are on it. `parameter`: the slot takes parameters
    only. `dtype`: an op out of place may give another dtype. `unknown`: too much to look through. `untyped`,
    `shape`: an op in place may be refused, since a dtype is not known, or an operand not seen to fit. Of
    `x[i] = v`: `index`, `mask`: `i` is not seen to be what `index_put` takes, or a mask of all of `x`; `value`,
    `number`: `v` is not seen to be a tensor that `index_put` takes, or a number; `layout`: a mask that may lie
    otherwise in memory than `x`. `view`: the tensor is a part of another. `overlap`: its elements may share
    memory, so that a write in place reaches one through another. `reread`: the op reads the written memory a
    second time, and may find there what it wrote. `refused`:
    out of place the op refuses arguments that it takes in place. `whole`: its elements are integers or truth values;
    `truth`: these; `alone`: no other tensor is an operand of such a one. `shown`: the module's flag is printed."""

    def __or__(self, other: Sharing) -> Sharing:
        return Sharing(self.slots | other.slots, self.reasons | other.reasons)


NOBODY = Sharing()


ELSEWHERE = "^"
