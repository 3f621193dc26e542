"""What is kept of an entry: its answer, and what that depends on."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from gradguard.engine.domain.events import Event
from gradguard.engine.domain.facts import Facts
from gradguard.engine.domain.fault import Fault
from gradguard.engine.domain.sharing import Sharing
from gradguard.engine.driver import covered
from gradguard.engine.driver.shares import Budget

NO_BUDGET = Budget(0, 0)


@dataclass(frozen=True, slots=True)
class Record:
    """What one entry gave, and what it was made from: the answer stands while these nodes stand."""

    events: tuple[Event, ...]
    needs: tuple[str, ...]
    """What other code that it needs was read in part, which is told once for the file."""
    entered: frozenset[ast.AST]
    devices: frozenset[str]
    sharing: dict[ast.AST, Sharing]
    needed: frozenset[ast.AST] = frozenset()
    read: frozenset[str] = frozenset()
    """Globals of the file whose values it asked for."""
    steps: int = 0
    """What it took."""
    budget: Budget = NO_BUDGET
    """What it might have taken."""
    cost: int = 0
    """Its steps, and what operations took beyond theirs."""
    objects: dict[str, int] = field(default_factory=dict)
    """What making the objects took that it shares with other entries, by class."""
    stopped: bool = False
    """The budget ended within a path."""
    cut: bool = False
    """Further paths were not tried because too much of the budget was used."""
    facts: Facts | None = None
    quiet: bool = False
    """No path of it put anything on the tape or showed anything."""
    gone: frozenset[covered.Way] = covered.NO_WAYS
    taken: frozenset[covered.Way] = covered.NO_WAYS
    spared: frozenset[covered.Way] = covered.NO_WAYS
    """See `covered.Choice`."""
    faults: tuple[Fault, ...] = ()
    """What it met of the engine's own. Where there is any, the answer holds less than it should."""

    def holds_for(self, budget: Budget) -> bool:
        """Whether it would be the same with another budget: what is not used up makes no difference."""
        tries = self.budget.tries == budget.tries or self.steps < min(self.budget.tries, budget.tries)
        whole = self.budget.whole == budget.whole or (not self.stopped and self.steps <= budget.whole)
        return tries and whole
