"""What keeps tensors alive: the container of the program that holds them, and the statement that fills it."""

from __future__ import annotations

import gc
import sys
from collections import Counter, deque
from types import FrameType, FunctionType, MethodType, ModuleType
from typing import Any

import torch

from gradguard.runtime import lines
from gradguard.runtime.frames import Frames
from gradguard.runtime.graph import NodeRecord
from gradguard.runtime.variables import OPTIMIZED

MOST_LEVELS = 4
MOST_HOLDERS = 50
MOST_ELEMENTS = 100_000
MOST_REACHED = 50_000


def common_container(tensors: list[Any], frames: Frames) -> Any:
    """The innermost list, dict, set, deque or array of objects of the program that (indirectly) holds all the tensors."""
    found = _common([[tensor] for tensor in tensors], {id(tensors)})
    if found is None:
        views = _views_of(tensors)
        if all(views):
            found = _common(views, {id(tensors), *map(id, views)})
    return found if found is not None else _array_of_objects(tensors, frames)


def filled(container: Any) -> int:
    """How many things a container holds."""
    return sum(item is not None for item in container.flat) if _is_array(container) else len(container)


def holds(container: Any, tensor: Any) -> bool:
    """Whether a tensor is an item of a container itself."""
    if _is_array(container):
        return True
    items = container.values() if isinstance(container, dict) else container
    return any(item is tensor for item in items)


def kind_of(container: Any) -> str:
    return "NumPy array" if _is_array(container) else type(container).__name__


def store_in_source(container: Any, paths: list[str]) -> tuple[str, int] | None:
    """The one statement of the user's files that puts something into an attribute or name that is the container."""
    names = Counter[str]()
    for holder in gc.get_referrers(container):
        if isinstance(holder, dict):
            for key, value in holder.items():
                if value is container and isinstance(key, str):
                    names[key] += 1
    found = [(path, line) for path in paths for name in names for line in lines.stores_into(path, name)]
    return found[0] if len(found) == 1 else None


def _common(layers: list[list[Any]], own: set[int]) -> Any:
    """Searches outwards from each of the layers until one container has been reached from all.

    `own` are the lists of this search.
    """
    reached: list[dict[int, Any]] = [{} for _ in layers]
    for _ in range(MOST_LEVELS):
        for index, layer in enumerate(layers):
            # One pass over all objects of the process for the whole layer.
            holders = gc.get_referrers(*layer)
            own = {*own, id(holders), id(layers), id(reached), *map(id, layers), *map(id, reached)}
            above = [
                holder
                for holder in holders
                if id(holder) not in own and id(holder) not in reached[index] and _may_hold(holder)
            ]
            own.remove(id(holders))
            del holders
            reached[index].update((id(holder), holder) for holder in above)
            layers[index] = above[:MOST_HOLDERS]
            del above
        for number in set.intersection(*(set(found) for found in reached)):
            if _is_container(reached[0][number]):
                return reached[0][number]
    return None


def _may_hold(holder: Any) -> bool:
    """Objects of the program; not frames, modules and the lists of this search itself.

    A function holds its defaults, and what it closes over.
    """
    if isinstance(holder, (FrameType, ModuleType, MethodType, type)):
        return False
    if isinstance(holder, dict):
        return "__builtins__" not in holder and "__name__" not in holder
    if isinstance(holder, tuple) and holder and isinstance(holder[0], NodeRecord):
        return False
    return not type(holder).__module__.startswith("gradguard.runtime")


def _is_container(holder: Any) -> bool:
    return isinstance(holder, (list, dict, set, deque))


def _views_of(tensors: list[Any]) -> list[list[Any]]:
    """Views that hold each of the tensors as their base, unseen by the garbage collector."""
    found: dict[int, list[Any]] = {id(tensor): [] for tensor in tensors}
    for thing in gc.get_objects():
        # `isinstance` would ask proxies for their class.
        if issubclass(type(thing), torch.Tensor) and thing._is_view() and id(thing._base) in found:
            found[id(thing._base)].append(thing)
    return list(found.values())


def _is_array(thing: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and issubclass(type(thing), numpy.ndarray) and thing.dtype == object


def _array_of_objects(tensors: list[Any], frames: Frames) -> Any:
    """A NumPy array, which the garbage collector does not know, among the variables of the running code and what they hold."""
    frame: FrameType | None = sys._getframe(1)
    pending: list[Any] = []
    while frame is not None:
        if frames.is_user_file(frame.f_code.co_filename):
            pending += [*frame.f_locals.values(), *frame.f_globals.values()]
            if sys.version_info < (3, 13) and frame.f_code.co_flags & OPTIMIZED:
                frame.f_locals.clear()
        if frame is frames.base:
            break
        frame = frame.f_back
    wanted = set(map(id, tensors))
    seen: set[int] = set()
    while pending and len(seen) < MOST_REACHED:
        thing = pending.pop(0)
        if id(thing) in seen or isinstance(thing, (FrameType, ModuleType, FunctionType, type, torch.Tensor)):
            continue
        seen.add(id(thing))
        if not _is_array(thing):
            pending += gc.get_referents(thing)
        elif thing.size <= MOST_ELEMENTS and wanted <= set(map(id, thing.flat)):
            return thing
    return None
