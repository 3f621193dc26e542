"""Which parameters get gradients, and where the way to the others is cut (GG112, GG204 for targets, GG205)."""

from __future__ import annotations

import gc
import sys
import weakref
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch

from gradguard.findings import Severity
from gradguard.runtime import lines
from gradguard.runtime.collect import Where
from gradguard.runtime.frames import Place, Site
from gradguard.runtime.graph import is_leaf, node_of, origin, storage_of
from gradguard.runtime.plans import Plan
from gradguard.runtime.run_state import RunState
from gradguard.runtime.survey import Survey, survey
from gradguard.runtime.variables import locals_of

MOST_SITES = 4
MOST_LISTED = 8
MOST_LEAVES = 20_000
FEWEST_STEPS = 2
Parameter = torch.nn.Parameter


@dataclass(slots=True)
class Owned:
    """One parameter of an optimizer."""

    reference: weakref.ref[Any]
    position: int
    steps: int = 0
    with_gradient: int = 0


@dataclass(slots=True)
class Optimizer:
    """What is known about one optimizer: where it steps and what it owns."""

    site: Site
    owned: dict[int, Owned] = field(default_factory=dict)
    steps: int = 0
    last_grads: dict[int, tuple[int, int]] = field(default_factory=dict)


@dataclass(slots=True)
class Cut:
    """A place that drops graphs, and the parameters that lead into them (by id)."""

    place: Place
    what: str
    sequence: int
    leaves: set[int]


class Gradients:
    """Follows parameters from optimizer to backward."""

    def __init__(self, state: RunState) -> None:
        self.state = state
        self.optimizers: dict[int, Optimizer] = {}
        self.references: dict[int, weakref.ref[Any]] = {}
        self.cuts: dict[tuple[int, int], Cut] = {}
        self.without_grad: dict[int, list[Site]] = {}
        self.leaf_storages: dict[int, int] = {}
        self.reached: dict[int, tuple[weakref.ref[Any], Site | None]] = {}
        self._lifted: dict[int, int] = {}
        self._no_drops: set[tuple[int, int]] = set()

    # Where values leave the graph

    def see_drop(self, plan: Plan, args: Any, needs: bool, frame: FrameType) -> None:
        """`item`, `detach` or `torch.tensor` of a value that has a graph; each place is looked at once."""
        if self.state.thread().depth or not (needs or plan.lifts):
            return
        user = self.state.frames.user_frame(frame)
        if user is None:
            return
        key = (id(user.f_code), user.f_lasti)
        if key in self.cuts:
            self.cuts[key].sequence = self.state.graph.tick()
            return
        if plan.lifts:
            if self._lifted.get(hash(key), 0) < 3:
                self._lifted[hash(key)] = self._lifted.get(hash(key), 0) + 1
                self._see_new_tensor(key, user)
            return
        if key in self._no_drops:
            return
        tensor = args[0]
        place = Place(user.f_code, user.f_lasti)
        if plan.name == "detach" and "detach" not in lines.call_names(place):
            # Autograd detaches the results that it saves.
            self.state.frames.kind(user.f_code)
            self._no_drops.add(key)
            return
        what = "`detach`" if plan.name == "detach" else "Reading the value as a Python number"
        self._cut(key, place, what, [tensor])

    def _see_new_tensor(self, key: tuple[int, int], user: FrameType) -> None:
        place = Place(user.f_code, user.f_lasti)
        for call in lines.calls_at(place):
            names = {n for a in call.args for n in lines.loaded_names(a)}
            values = locals_of(user, tuple(names))
            dropped = [t for v in values.values() for t in _with_grad(v)]
            if dropped:
                self._cut(key, place, "`torch.tensor` of tensors that have a graph", dropped)

    def _cut(self, key: tuple[int, int], place: Place, what: str, dropped: list[Any]) -> None:
        with self.state.silenced():
            asked = [origin(t) for t in dropped]
            found = survey(asked, None)
        leaves = {id(leaf) for leaf, _ in found.leaves} | {id(t) for t in asked if node_of(t) is None}
        self.state.frames.kind(place.code)
        self.cuts[key] = Cut(place, what, self.state.graph.tick(), leaves)

    def see_alias_reads(self, plan: Plan, args: Any, frame: FrameType) -> None:
        """An op reads the memory of a parameter through a tensor without grad, such as `p.data`."""
        if not self.leaf_storages or plan.writes or not torch.is_grad_enabled():
            return
        for index in plan.positions:
            if index >= len(args):
                continue
            tensor = args[index]
            if not isinstance(tensor, torch.Tensor):
                continue
            leaf = self.leaf_storages.get(storage_of(tensor))
            if leaf is None:
                continue
            user = self.state.frames.user_frame(frame)
            if user is None:
                return
            key = (id(user.f_code), user.f_lasti)
            cut = self.cuts.get(key)
            if cut is None:
                self.state.frames.kind(user.f_code)
                place = Place(user.f_code, user.f_lasti)
                self.cuts[key] = Cut(
                    place, "`.data` or `detach` of a parameter", self.state.graph.tick(), {leaf}
                )
            else:
                cut.leaves.add(leaf)
                cut.sequence = self.state.graph.tick()

    def see_use_without_grad(self, plan: Plan, args: Any, frame: FrameType) -> None:
        """A parameter is used under no_grad; a few places per parameter are remembered."""
        if plan.writes or plan.written_names:
            return
        for index in plan.positions:
            tensor = args[index] if index < len(args) else None
            if isinstance(tensor, torch.Tensor) and tensor.requires_grad and is_leaf(tensor):
                sites = self.without_grad.get(id(tensor))
                if sites is None:
                    if len(self.without_grad) >= MOST_LEAVES:
                        return
                    sites = self.without_grad[id(tensor)] = []
                if len(sites) < MOST_SITES:
                    site = self.state.frames.site(frame)
                    if site not in sites:
                        sites.append(site)

    def latest_cut(self) -> tuple[Place, str] | None:
        """The last place where a graph or a parameter was dropped."""
        cuts = sorted(self.cuts.values(), key=lambda c: c.sequence)
        cuts = [c for c in cuts if c.leaves]
        if cuts:
            aliases = [c for c in cuts if c.what.startswith("`.data`")]
            chosen = (aliases or cuts)[-1]
            return chosen.place, chosen.what
        return None

    # Steps and backward

    def before_backward(self, found: Survey) -> None:
        for leaf, record in found.leaves:
            # Other leaves, such as inputs, are new in every pass; only parameters are asked about at the end.
            if not isinstance(leaf, Parameter):
                continue
            key = id(leaf)
            if key not in self.reached:
                self.reached[key] = (weakref.ref(leaf), record.site if record is not None else None)
            self.leaf_storages.setdefault(storage_of(leaf), key)

    def before_step(self, optimizer: Any, site: Site) -> None:
        known = self.optimizers.get(id(optimizer))
        if known is None:
            known = self.optimizers[id(optimizer)] = Optimizer(site)
        known.steps += 1
        position = 0
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                owned = known.owned.get(id(parameter))
                if owned is None:
                    owned = known.owned[id(parameter)] = Owned(weakref.ref(parameter), position)
                    self.leaf_storages.setdefault(storage_of(parameter), id(parameter))
                position += 1
                owned.steps += 1
                grad = parameter.grad
                if grad is not None:
                    owned.with_gradient += 1
                    self._see_grad(known, parameter, grad)
                grad = None

    def _see_grad(self, known: Optimizer, parameter: Any, grad: Any) -> None:
        """A gradient tensor that was rewritten in place since the last step while somebody else holds it."""
        last = known.last_grads.get(id(parameter))
        known.last_grads[id(parameter)] = (id(grad), grad._version)
        # Three references are ours: two arguments and that of getrefcount.
        if last is None or last[0] != id(grad) or last[1] == grad._version or sys.getrefcount(grad) <= 3:
            return
        key = _holder_key(grad)
        if key is None:
            return
        places: list[Where] = [
            (path, line) for path in self.state.frames.user_files() for line in lines.stores_named(path, key)
        ]
        for place in places[:1]:
            self.state.findings.add(
                "GG112",
                place,
                f"`{key}` keeps the gradient tensor itself, and zeroing or accumulation rewrites it in place: the kept "
                "value changes with it.",
                Severity.WARNING,
                [(known.site.inner, "at this step the kept tensor had been rewritten")],
            )

    # At the end

    def finish(self, complete: bool) -> None:
        owned = {key for optimizer in self.optimizers.values() for key in optimizer.owned}
        for optimizer in self.optimizers.values():
            missing = [
                (key, o)
                for key, o in optimizer.owned.items()
                if o.steps >= FEWEST_STEPS and not o.with_gradient
            ]
            if missing:
                self._report_missing(optimizer, missing)
        if complete and any(o.steps >= FEWEST_STEPS for o in self.optimizers.values()):
            self._report_unowned(owned)

    def _report_missing(self, optimizer: Optimizer, missing: list[tuple[int, Owned]]) -> None:
        count = f"{len(missing)} of {len(optimizer.owned)} parameters of the optimizer never get a gradient"
        told = False
        by_place: dict[Place, tuple[str, int]] = {}
        for key, _ in missing:
            for cut in self.cuts.values():
                if key in cut.leaves:
                    what, number = by_place.get(cut.place, (cut.what, 0))
                    by_place[cut.place] = (what, number + 1)
        related: list[tuple[Where, str]] = [(optimizer.site.inner, "the optimizer steps here")]
        notes = (f"without gradient: {_listed([o for _, o in missing])}",)
        lines_of_guards: set[tuple[str, int]] = set()
        for key, _ in missing:
            for site in self.without_grad.get(key, ()):
                place = site.inner
                guard = lines.guarding_no_grad(place) if place is not None else None
                if place is not None and guard is not None:
                    lines_of_guards.add((place.path, guard))
        if by_place:
            place, (what, _) = max(by_place.items(), key=lambda item: item[1][1])
            told = self._missing(place, f"{what} cuts the graph: {count}.", related, notes)
        elif lines_of_guards:
            for guarded in sorted(lines_of_guards):
                told = self._missing(
                    guarded, f"Parameters are used without grad here: {count}.", related, notes
                )
        if not told:
            self._missing(optimizer.site.inner, f"{count}: no backward reaches them.", [], notes)

    def _missing(
        self, where: Where, message: str, related: list[tuple[Where, str]], notes: tuple[str, ...]
    ) -> bool:
        self.state.findings.add("GG205", where, message, Severity.WARNING, related, notes)
        return True

    def _report_unowned(self, owned: set[int]) -> None:
        """Networks that get gradients although no optimizer has their parameters."""
        places: dict[Place, int] = {}
        for key, (reference, site) in self.reached.items():
            leaf = reference()
            if (
                leaf is None
                or key in owned
                or not isinstance(leaf, Parameter)
                or leaf.grad is None
                or site is None
            ):
                continue
            place = site.root_place
            if place is not None:
                places[place] = places.get(place, 0) + 1
        for place, count in places.items():
            self.state.findings.add(
                "GG204",
                place,
                f"backward computes gradients for {count} parameters of this call that no optimizer owns.",
                Severity.INFORMATION,
            )


def _listed(owned: list[Owned]) -> str:
    """Positions and shapes of parameters, in the order of the optimizer."""
    words = []
    for each in owned[:MOST_LISTED]:
        parameter = each.reference()
        shape = "" if parameter is None else f" {tuple(parameter.shape)}"
        words.append(f"parameter {each.position}{shape}")
    return ", ".join(words) + (", ..." if len(owned) > MOST_LISTED else "")


def _with_grad(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value] if value.requires_grad else []
    if isinstance(value, (list, tuple)):
        return [v for v in value if isinstance(v, torch.Tensor) and v.requires_grad]
    return []


def _holder_key(grad: Any) -> str | None:
    """The name under which a dictionary or an object holds a tensor."""
    for holder in gc.get_referrers(grad):
        if isinstance(holder, dict):
            for key, value in holder.items():
                if value is grad and isinstance(key, str):
                    return key
    return None
