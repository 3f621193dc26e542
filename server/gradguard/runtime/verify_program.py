"""One run of a program for `verify`: it is loaded, called, differentiated, and what it computed is copied."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import itertools
import os
import random
import sys
import sysconfig
import types
from collections import ChainMap
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from gradguard.runtime import verify_values as held
from gradguard.runtime.verify_forms import said

MOST_YIELDED = 100
"""Of a generator that does not end, so many values are asked for."""


@dataclass(slots=True)
class Ran:
    """What one run did."""

    values: dict[str, Any] = field(default_factory=dict)
    """Results, and what it wrote into things that outlast it."""
    gradients: dict[str, Any] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)
    """Arguments that it wrote."""
    forward_error: str = ""
    backward_error: str = ""
    differentiable: bool = False
    """Whether a result has a history."""
    returns: bool = True
    """Whether it returns anything."""
    notes: list[str] = field(default_factory=list)


class Unusable(Exception):
    """Why a version cannot be run at all."""


def ended(error: BaseException) -> str:
    """How a program ended, in words. What it asks for is in the words of argparse, which go to stderr."""
    if isinstance(error, SystemExit):
        code = error.code
        if isinstance(code, str):
            return (
                f"the program ended itself: {code.strip().splitlines()[-1] if code.strip() else 'SystemExit'}"
            )
        return f"the program ended itself with exit code {code}"
    return said(error)


class Program:
    """A text of a task, ready to run. Everything is made anew: modules beside the file, seeds, state."""

    def __init__(self, task: dict[str, Any], text: str, loaded: Set[str]) -> None:
        """loaded: names of the modules that were there before any run."""
        self.task = task
        self.text = text
        self._loaded = loaded
        self.ran = Ran()
        self._spent: set[Any] = set()
        self._calls = 0
        self._within = False

    def prepare(self) -> Callable[[], None]:
        """Loads the file and makes the inputs; what is returned is the part that is measured. Raises Unusable."""
        _forget(self._loaded)
        torch.manual_seed(0)
        random.seed(0)
        if "numpy.random" in sys.modules:
            sys.modules["numpy.random"].seed(0)
        return self._function() if self.task["function"] else self._script()

    # The whole file

    def _script(self) -> Callable[[], None]:
        module = self._module("__main__")
        code = compile(self.text, self.task["path"], "exec")

        def work() -> None:
            try:
                with self._recording():
                    exec(code, module.__dict__)
            except SystemExit as error:
                if error.code not in (None, 0):
                    self.ran.forward_error = ended(error)
            except Exception as error:
                if not self.ran.backward_error:
                    self.ran.forward_error = ended(error)
            with held.own_work():
                own = {
                    name: each for name, each in vars(module).items() if self._is_state(module, name, each)
                }
                found = held.values(own, "")
                self.ran.values.update(
                    {name: held.kept(each) for name, each in found.items() if not isinstance(each, str)}
                )

        return work

    def _module(self, name: str) -> types.ModuleType:
        made = types.ModuleType(name)
        made.__file__ = self.task["path"]
        sys.modules[name] = made
        folder = str(Path(self.task["path"]).resolve().parent)
        if sys.path[0] != folder:
            sys.path.insert(0, folder)
        sys.argv = [self.task["path"], *self.task.get("arguments", ())]
        return made

    def _is_state(self, module: types.ModuleType, name: str, value: Any) -> bool:
        if name.startswith("__") or isinstance(value, (types.ModuleType, str)):
            return False
        if isinstance(value, types.FunctionType):
            return value.__module__ == module.__name__
        return True

    # One function

    def _function(self) -> Callable[[], None]:
        module = self._module("__verify__")
        try:
            exec(compile(self.text, self.task["path"], "exec"), module.__dict__)
        except (Exception, SystemExit) as error:
            raise Unusable(f"the file cannot be loaded: {ended(error)}") from None
        inputs = self._inputs(module, self.task["inputs"])
        call, owner = self._callee(module, inputs)
        arguments = {name: value for name, value in inputs.items() if name != "self"}
        inputs_given = dict(arguments)
        given = held.values(inputs_given, "")
        own = {name: each for name, each in vars(module).items() if self._is_state(module, name, each)}
        outlasting = {"self": owner, self.task["function"]: getattr(call, "__func__", call), **own}

        def reachable() -> dict[str, Any]:
            found = held.values(outlasting, "")
            return {name: each for name, each in found.items() if not isinstance(each, str)}

        start = {**reachable(), **given}
        before = {name: held.kept(each) for name, each in start.items()}
        versions = {name: _version(each) for name, each in start.items()}
        names = self._leaf_names(start)
        random_state = torch.get_rng_state()

        positional = self._positional(call, arguments)

        def work() -> None:
            torch.set_rng_state(random_state)
            try:
                with self._recording():
                    result = self._result(call(*positional, **arguments))
            except (Exception, SystemExit) as error:
                if not self.ran.backward_error:
                    self.ran.forward_error = ended(error)
                return
            self.ran.returns = result is not None
            with held.own_work():
                results = held.values(result, "result")
                roots = {name: each for name, each in results.items() if isinstance(each, torch.Tensor)}
                self.ran.values.update({name: held.kept(each) for name, each in results.items()})
                for name, each in {**reachable(), **held.values(inputs_given, "")}.items():
                    changed = name not in before or _version(each) != versions[name]
                    if changed or held.difference(before[name], held.kept(each)):
                        if name in given:
                            self.ran.written.add(name)
                        self.ran.values[f"{name} afterwards"] = held.kept(each)
                        if isinstance(each, torch.Tensor) and not each.is_leaf:
                            roots.setdefault(name, each)
            self._differentiate(roots, names)

        return work

    def _inputs(self, module: types.ModuleType, given: dict[str, str]) -> dict[str, Any]:
        names = ChainMap(module.__dict__, vars(torch.nn), vars(torch))
        inputs: dict[str, Any] = {}
        for name, expression in given.items():
            try:
                inputs[name] = eval(expression, {"__builtins__": __builtins__, "torch": torch}, names)
            except (Exception, SystemExit) as error:
                raise Unusable(f"input {name}: {ended(error)}") from None
        return inputs

    def _callee(self, module: types.ModuleType, inputs: dict[str, Any]) -> tuple[Callable[..., Any], Any]:
        """What to call, and the object it belongs to."""
        first, *rest = self.task["function"].split(".")
        found = getattr(module, first, None)
        if found is None:
            raise Unusable(f"there is no {first} in the file")
        owner: Any = None
        while isinstance(found, type):
            nested = vars(found).get(rest[0]) if rest else None
            if isinstance(nested, type):
                found, first, rest = nested, f"{first}.{rest[0]}", rest[1:]
                continue
            method = rest.pop(0) if rest else ""
            owner = inputs.get("self")
            if owner is None and not isinstance(nested, (staticmethod, classmethod)):
                try:
                    owner = found()
                except (Exception, SystemExit) as error:
                    raise Unusable(
                        f"{first}() cannot be made: {ended(error)}; give self={first}(...) among the inputs"
                    ) from None
            if isinstance(nested, (property, functools.cached_property)):
                found = functools.partial(getattr, owner, method)
            else:
                found = getattr(owner if owner is not None else found, method) if method else owner
        for name in rest:
            found = self._nested(module, found, name)
        if not callable(found):
            raise Unusable(f"{self.task['function']} cannot be called")
        return found, owner

    def _nested(self, module: types.ModuleType, outer: Any, name: str) -> Callable[..., Any]:
        """A function that another one makes, with what it has around it: the other one is run."""
        code = getattr(inspect.unwrap(outer), "__code__", None)
        found: list[Any] = []

        def profile(frame: types.FrameType, event: str, _: Any) -> None:
            if event == "return" and frame.f_code is code and name in frame.f_locals:
                found.append(frame.f_locals[name])

        given = self._inputs(module, self.task.get("outer", {}))
        sys.setprofile(profile)
        try:
            outer(**given)
        except (Exception, SystemExit) as error:
            if not found:
                raise Unusable(
                    f"{getattr(outer, '__name__', outer)}, which makes {name}: {ended(error)}"
                ) from None
        finally:
            sys.setprofile(None)
        if not found:
            raise Unusable(f"{getattr(outer, '__name__', outer)} made no {name} with these inputs")
        return found[-1]  # type: ignore[no-any-return]

    def _positional(self, call: Callable[..., Any], arguments: dict[str, Any]) -> list[Any]:
        """Takes those out that have no name for a caller."""
        try:
            parameters = inspect.signature(call).parameters.values()
        except (TypeError, ValueError):
            return []
        given: list[Any] = []
        before: list[str] = []
        for each in parameters:
            if each.kind is each.POSITIONAL_ONLY and each.name in arguments:
                given.append(arguments.pop(each.name))
            elif each.kind is each.VAR_POSITIONAL and each.name in arguments:
                # All before it go by position as well.
                given += [arguments.pop(one) for one in before if one in arguments]
                given += list(arguments.pop(each.name))
            elif each.kind is each.VAR_KEYWORD and isinstance(arguments.get(each.name), dict):
                arguments.update(arguments.pop(each.name))
            elif each.kind is each.POSITIONAL_OR_KEYWORD:
                before.append(each.name)
        return given

    def _result(self, result: Any) -> Any:
        """What a coroutine returns, what a generator yields."""
        if inspect.isawaitable(result):
            return self._result(asyncio.run(_awaited(result)))
        if inspect.isasyncgen(result):
            return asyncio.run(_all_of(result))
        if inspect.isgenerator(result):
            found = list(itertools.islice(result, MOST_YIELDED))
            if len(found) == MOST_YIELDED:
                self.ran.notes.append(f"of what it yields, the first {MOST_YIELDED} values are compared")
            result.close()
            return found
        return result

    # Backwards

    def _differentiate(self, roots: dict[str, Any], names: dict[int, str]) -> None:
        """The gradients of random sums of the results, of which each element counts."""
        with held.own_work():
            mine = {
                id(e): e for e in roots.values() if e.grad_fn is not None and not _nodes([e]) & self._spent
            }
            self.ran.differentiable = bool(mine)
            if not mine:
                return
            weights = [_weights(each, number) for number, each in enumerate(mine.values())]
            leaves = self._leaves(list(mine.values()))
        try:
            torch.autograd.backward(list(mine.values()), weights)
        except Exception as error:
            self.ran.backward_error = said(error)
            return
        with held.own_work():
            for number, leaf in enumerate(leaves):
                if leaf.grad is not None:
                    self.ran.gradients[names.get(id(leaf), f"leaf {number}")] = held.kept(leaf.grad)

    @contextlib.contextmanager
    def _recording(self) -> Iterator[None]:
        """Notes the gradients of every backward of the program itself."""
        backward, grad = torch.autograd.backward, torch.autograd.grad

        def recorded(kind: str, call: Callable[..., Any], roots: Any, *args: Any, **kwargs: Any) -> Any:
            if self._within:
                # Torch's own way to itself, or a backward within a backward.
                return call(roots, *args, **kwargs)
            self._calls += 1
            name = f"{kind} {self._calls}"
            with held.own_work():
                given = [each for each in _listed(roots) if isinstance(each, torch.Tensor)]
                self.ran.values.update({f"{name} of {i}": held.kept(root) for i, root in enumerate(given)})
                leaves = self._leaves(given)
                self._spent |= _nodes(given)
            self._within = True
            try:
                answer = call(roots, *args, **kwargs)
            except Exception as error:
                self.ran.backward_error = said(error)
                raise
            finally:
                self._within = False
            with held.own_work():
                got = [leaf.grad for leaf in leaves] if answer is None else list(answer)
                for number, each in enumerate(got):
                    if each is not None:
                        self.ran.gradients[f"{name} leaf {number}"] = held.kept(each)
            return answer

        def recorded_backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            return recorded("backward", backward, tensors, *args, **kwargs)

        def recorded_grad(outputs: Any, *args: Any, **kwargs: Any) -> Any:
            return recorded("grad", grad, outputs, *args, **kwargs)

        torch.autograd.backward, torch.autograd.grad = recorded_backward, recorded_grad
        try:
            yield
        finally:
            torch.autograd.backward, torch.autograd.grad = backward, grad

    def _leaf_names(self, start: dict[str, Any]) -> dict[int, str]:
        """Of leaves by their number; the only leaf that a tensor was made of goes by its name."""
        tensors = {name: each for name, each in start.items() if isinstance(each, torch.Tensor)}
        names = {id(each): name for name, each in tensors.items() if each.is_leaf}
        for name, each in tensors.items():
            leaves = self._leaves([each]) if not each.is_leaf else []
            if len(leaves) == 1:
                names.setdefault(id(leaves[0]), name)
        return names

    def _leaves(self, roots: list[torch.Tensor]) -> list[torch.Tensor]:
        """All leaves of a graph, wherever the program holds them, in an order that does not hang on how it was made."""
        found = {}
        for node in _nodes(roots):
            variable = getattr(node, "variable", None)
            if variable is not None:
                found[id(variable)] = variable
        found.update({id(root): root for root in roots if root.is_leaf and root.requires_grad})
        return sorted(found.values(), key=_order)


def _listed(given: Any) -> list[Any]:
    return [given] if isinstance(given, torch.Tensor) else list(given)


def _order(leaf: torch.Tensor) -> tuple[Any, ...]:
    plain = leaf.detach()
    if plain.is_complex():
        plain = torch.view_as_real(plain.resolve_conj())
    return tuple(leaf.shape), str(leaf.dtype), held.dense(plain).double().nan_to_num().sum().item()


def _nodes(roots: list[torch.Tensor]) -> set[Any]:
    seen: set[Any] = set()
    waiting = [root.grad_fn for root in roots]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting.extend(one for one, _ in node.next_functions)
    return seen


def _weights(root: torch.Tensor, number: int) -> torch.Tensor:
    """Numbers between 0 and 1, the same in every run."""
    generator = torch.Generator().manual_seed(number + 1)
    with torch.no_grad():
        blank = held.blank(held.dense(root.detach()))
        (torch.view_as_real(blank) if blank.is_complex() else blank).uniform_(generator=generator)
        return blank.to(root.device)


def _version(value: Any) -> int:
    return value._version if isinstance(value, torch.Tensor) and not value.is_inference() else 0


async def _awaited(result: Any) -> Any:
    return await result


async def _all_of(result: Any) -> list[Any]:
    found: list[Any] = []
    async for each in result:
        found.append(each)
        if len(found) == MOST_YIELDED:
            break
    return found


def _forget(loaded: Set[str]) -> None:
    """Modules that a run has loaded are loaded anew, so that no other run finds what it left in them; libraries stay."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name not in loaded and isinstance(file, str) and file.endswith(".py") and not _is_library(file):
            del sys.modules[name]


def _is_library(file: str) -> bool:
    return "site-packages" in file or "dist-packages" in file or file.startswith(_STANDARD)


_STANDARD = tuple({sysconfig.get_paths()[name] + os.sep for name in ("stdlib", "platstdlib")})
