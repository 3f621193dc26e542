"""What the plans of one analysis are made with."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gradguard.engine import Analysis
from gradguard.engine.domain.events import InferenceSaved, RefusedWrite, SavedTensorMutated, SecondBackward
from gradguard.engine.domain.tensors import Place
from gradguard.findings import Applicability, FixPlan
from gradguard.ops import table
from gradguard.ops.table import Table
from gradguard.rules.model import shortened


def for_torch(ops: Table) -> dict[str, str]:
    """What a plan says of the torch that the program is for: nothing where it is the newest that is known."""
    return {} if ops.version == table.load(None).version else {"torch": ops.version}


class Events:
    """The events of one analysis, as the plan for one looks up others."""

    def __init__(self, analysis: Analysis) -> None:
        self.stops = False
        """Whether torch may stop the program somewhere."""
        self._known: dict[tuple[str, ast.AST], bool] = {}
        self._writes: dict[ast.AST, list[SavedTensorMutated | RefusedWrite]] = {}
        for event in analysis.events:
            self.stops |= isinstance(
                event, (SavedTensorMutated, RefusedWrite, SecondBackward, InferenceSaved)
            )
            if isinstance(event, (SavedTensorMutated, RefusedWrite)):
                self._writes.setdefault(event.write.place.node, []).append(event)

    def once(self, name: str, node: ast.AST, ask: Callable[[], bool]) -> bool:
        """The answer to a question about a node, which several findings ask."""
        if (name, node) not in self._known:
            self._known[name, node] = ask()
        return self._known[name, node]

    def writes_at(self, place: Place) -> Sequence[SavedTensorMutated | RefusedWrite]:
        """Those about a write at this place; they share one finding."""
        return self._writes.get(place.node, ())


@dataclass(frozen=True, slots=True)
class Context:
    """One analysis, with the means to plan fixes of its findings."""

    analysis: Analysis
    events: Events

    @property
    def table(self) -> Table:
        """The operations of the torch that the program is analysed for."""
        return self.analysis.table or table.load(None)

    def plan(
        self,
        kind: str,
        title: str,
        applicability: Applicability,
        node: ast.AST | None,
        place: Place,
        **data: str,
    ) -> list[FixPlan]:
        """A fix on `node`; none where the node has no place."""
        if node is None or not hasattr(node, "lineno"):
            return []
        span = self.analysis.span(Place(place.path, node))
        return [
            FixPlan(
                kind,
                shortened(title),
                applicability,
                span,
                tuple(sorted({**for_torch(self.table), **data}.items())),
            )
        ]
