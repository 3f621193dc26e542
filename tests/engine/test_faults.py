"""A fault in the engine costs the piece of the program that it was met in, is told there, and leaves nothing behind."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from gradguard.check.workspace import ReadingWorkspace
from gradguard.engine import Analysis, analyse
from gradguard.engine.models import library
from gradguard.ops import table
from gradguard.rules import registry
from gradguard.source.text import Source
from tests.engine.analysing import NO_FILES
from tests.engine.test_reuse import FIXTURES, edited, shown

BAD = """\
def {name}(x):
    y = torch.rand(3, requires_grad=True).exp()
    y += 1
    y.sum().backward()
"""


@pytest.fixture(params=[ValueError("x"), MemoryError(), RecursionError(), KeyError("k"), ZeroDivisionError()])
def error(request: pytest.FixtureRequest) -> Exception:
    one: Exception = request.param
    return one


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch, error: Exception) -> Exception:
    """The model of `torch.erf` has a mistake."""
    return breaking(monkeypatch, error)


def breaking(monkeypatch: pytest.MonkeyPatch, error: Exception) -> Exception:
    def fails(*_: object) -> object:
        raise error

    monkeypatch.setitem(library.REGISTRY.torch, "torch.erf", fails)
    return error


def run(text: str, **files: str) -> Analysis:
    paths = {f"/w/{name}.py": f"import torch\n{other}" for name, other in files.items()}
    workspace = ReadingWorkspace(paths.__contains__, paths.get)
    return analyse(Source("/w/program.py", "import torch\n" + text), table.load(), workspace)


def found(analysis: Analysis) -> list[tuple[int, str, str]]:
    findings = sorted(registry.findings(analysis), key=lambda each: each.sort_key)
    return [(each.span.line, each.code, each.certainty.value) for each in findings]


def told(analysis: Analysis) -> list[int]:
    """Lines of what was not analysed because of the fault."""
    words = ("internal error", "nested too deeply")
    return sorted(
        {limit.span.line for limit in analysis.limits if any(word in limit.message for word in words)}
    )


def test_a_function_with_a_fault_costs_no_other(broken: Exception) -> None:
    text = BAD.format(name="before") + "def faulty(x):\n    return torch.erf(x)\n" + BAD.format(name="behind")
    analysis = run(text)
    assert found(analysis) == [(4, "GG101", "certain"), (10, "GG101", "certain")]
    assert told(analysis) == [6]


def test_it_is_told_with_its_kind_and_kept_for_the_log(broken: Exception) -> None:
    (limit,) = run("def faulty(x):\n    return torch.erf(x)\n").limits
    if isinstance(broken, RecursionError):
        # Python's own bound, which a program meets that is written so.
        assert (limit.message, limit.fault) == ("stopped early: nested too deeply", "")
    else:
        kind = type(broken).__name__
        assert limit.message == f"not analysed: internal error {kind} in fails; please report it"
        assert limit.fault.startswith("Traceback")
        assert kind in limit.fault.splitlines()[-1]


PIECES = {
    "a constant": "N = torch.erf(1)\n",
    "a default": "def f(x=torch.erf(1)):\n    return x\n",
    "a decorator": "def wraps(f):\n    torch.erf(1)\n    return f\n@wraps\ndef f(x):\n    return x\n",
    "an attribute of a class": "class C:\n    n = torch.erf(1)\n    def f(self, x):\n        return x\n",
    "a base class": "class C(torch.erf(1)):\n    pass\n",
    "a block": "if True:\n    N = torch.erf(1)\n",
    "a call": "torch.erf(1)\n",
    "a loop": "for i in range(3):\n    torch.erf(i)\n",
    "a function that it calls": "def f():\n    return torch.erf(1)\nN = f()\n",
    "a generator": "def f():\n    yield torch.erf(1)\nN = list(f())\n",
}


@pytest.mark.parametrize("piece", PIECES.values(), ids=PIECES.keys())
def test_a_statement_of_the_top_level_costs_no_function(broken: Exception, piece: str) -> None:
    text = BAD.format(name="before") + piece + BAD.format(name="behind")
    analysis = run(text)
    behind = 8 + piece.count("\n")
    assert [each for each in found(analysis) if each[0] in (4, behind)] == [
        (4, "GG101", "certain"),
        (behind, "GG101", "certain"),
    ]
    assert told(analysis)
    assert all(5 < line < behind for line in told(analysis))


def test_methods_are_analysed_where_the_class_or_its_constructor_has_a_fault(broken: Exception) -> None:
    method = "".join(f"    {line}\n" for line in BAD.format(name="run").splitlines()).replace(
        "(x)", "(self, x)"
    )
    for head in ("    n = torch.erf(1)\n", "    def __init__(self):\n        self.n = torch.erf(1)\n"):
        analysis = run("class C:\n" + head + method)
        assert found(analysis) == [(5 + head.count("\n"), "GG101", "certain")]
        assert told(analysis) == [3]


def test_an_imported_module_loses_the_statement(broken: Exception) -> None:
    lib = "N = torch.erf(1)\ntorch.erf(2)\n" + BAD.format(name="spoils")
    analysis = run("import lib\nprint(lib.N)\ndef f(x):\n    lib.spoils(x)\n", lib=lib)
    assert [(each.path, each.span.line) for each in registry.findings(analysis)] == [("/w/lib.py", 6)]
    (message,) = [limit.message for limit in analysis.limits]
    assert message.startswith("imported modules are read in part: ")


def test_a_name_that_was_not_given_its_value_is_unknown(broken: Exception) -> None:
    text = "N = 0\nN = torch.erf(1)\nheld = [0]\nM = held.append(torch.erf(1))\ndef f(x):\n    y = x.exp()\n"
    for use in ("N", "held[0]"):
        # With the value of the statement before, this would be certain not to write.
        assert len(found(run(text + f"    if {use}:\n        y += 1\n    y.sum().backward()\n"))) == 1
    assert (
        found(run("N = 0\ndef f(x):\n    y = x.exp()\n    if N:\n        y += 1\n    y.sum().backward()\n"))
        == []
    )


def test_a_script_goes_on_and_is_sure_of_nothing(broken: Exception) -> None:
    spoil = "x = torch.rand(3, requires_grad=True)\ny = x.exp()\ny += 1\ny.sum().backward()\n"
    analysis = run(spoil + "print(torch.erf(x))\n" + spoil)
    assert found(analysis) == [(4, "GG101", "certain"), (9, "GG101", "likely")]
    assert told(analysis) == [6]


def test_what_a_statement_had_entered_is_left(broken: Exception) -> None:
    for head in ("with torch.no_grad():", "for i in range(9):", "with torch.inference_mode():"):
        text = (
            f"{head}\n    N = torch.erf(1)\n"
            + BAD.format(name="f")
            + "f(torch.rand(3, requires_grad=True))\n"
        )
        assert found(run(text)) == [(6, "GG101", "likely")], head


def test_a_function_that_was_left_half_way_is_run_on_its_own(broken: Exception) -> None:
    text = "def f(x, deep=False):\n    if deep:\n        torch.erf(x)\n    y = x.exp()\n    y += 1\n    y.sum().backward()\n"
    assert [line for line, *_ in found(run(text + "f(torch.rand(3), True)\n"))] == [6]


def test_what_an_entry_did_to_the_globals_is_put_back(broken: Exception) -> None:
    text = "held = []\ndef fills(x):\n    held.append(1)\n    torch.erf(x)\ndef uses(x):\n    y = x.exp()\n    if held:\n        y += 1\n    y.sum().backward()\n"
    assert found(run(text)) == []


def test_another_way_through_the_function_is_still_seen(broken: Exception) -> None:
    text = "def f(x, how):\n    y = x.exp()\n    if how == 'a':\n        torch.erf(x)\n    y += 1\n    y.sum().backward()\n"
    assert [line for line, *_ in found(run(text))] == [6]


def test_nothing_is_left_out_for_being_like_a_function_with_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradguard.engine.driver import alike

    monkeypatch.setattr(alike, "COSTLY", 1)
    monkeypatch.setattr(alike, "ENOUGH", 1)
    breaking(monkeypatch, ValueError())
    make = "def net{n}():\n    y = build({n})\n    return y\n"
    text = "def build(n):\n    return torch.erf(n)\n" + "".join(make.format(n=n) for n in range(3))
    assert told(run(text)) == [2, 4, 7, 10]


@pytest.mark.parametrize("where", ["left_out", "allowed", "makes"])
def test_a_fault_beside_the_paths_costs_its_function(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    from gradguard.engine.driver import alike

    made: Callable[..., object] = getattr(alike.Shapes, where, None) or getattr(alike, where)

    def fails(*given: object) -> object:
        if any(getattr(node, "name", "") == "faulty" for node in given):
            raise ValueError
        return made(*given)

    monkeypatch.setattr(alike if where == "makes" else alike.Shapes, where, fails)
    analysis = run("def faulty(x):\n    return x\n" + BAD.format(name="other"))
    assert found(analysis) == [(6, "GG101", "certain")]
    assert told(analysis) == [2]


def test_a_file_with_an_expression_too_deep_for_python_keeps_its_other_functions() -> None:
    deep = " + ".join(["1"] * 1500)
    for piece in (f"N = {deep}\n", f"def f(x={deep}):\n    return x\n", f"def f(x):\n    return {deep}\n"):
        analysis = run(piece + BAD.format(name="other"))
        assert [code for _, code, _ in found(analysis)] == ["GG101"]


def sprinkled(text: str, chance: random.Random) -> str:
    """A program with calls of `torch.erf` here and there."""
    lines: list[str] = []
    for line in text.split("\n"):
        if (
            line.strip()
            and not line.strip().startswith(("#", ")", "]", "}", "else", "elif", "except", "@", '"'))
            and chance.random() < 0.04
        ):
            lines.append(line[: len(line) - len(line.lstrip())] + "torch.erf(0)")
        lines.append(line)
    return "\n".join(lines)


@pytest.mark.parametrize(
    "path", [FIXTURES / "inplace" / "modules.py", FIXTURES / "graph" / "freed.py"], ids=lambda path: path.stem
)
def test_edits_give_what_a_cold_run_gives(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    seed = random.randrange(10**9)
    chance = random.Random(seed)
    breaking(monkeypatch, ValueError("x"))
    clean = path.read_text("utf-8")
    text = clean
    source = Source("program.py", text)
    before = analyse(source, table.load(), NO_FILES)
    faulty = 0
    for step in range(12):
        text = edited(text, chance) if step % 3 else sprinkled(clean, chance) if step % 2 else clean
        source = Source("program.py", text, source)
        before = analyse(source, table.load(), NO_FILES, before)
        faulty += before.faulty
        assert shown(before) == shown(analyse(source, table.load(), NO_FILES)), f"seed {seed}, step {step}"
    assert faulty


def test_an_answer_with_a_fault_is_not_taken_over(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    text = (
        "import torch\nN = torch.erf(1)\ndef faulty(x):\n    y = x.exp()\n    torch.erf(x)\n    y += 1\n    y.sum().backward()\n"
        + BAD.format(name="other")
    )
    source = Source("program.py", text)
    with monkeypatch.context() as patch:
        breaking(patch, error)
        before = analyse(source, table.load(), NO_FILES)
        assert len(told(before)) == 2
    source = Source("program.py", text + "# typed\n", source)
    again = analyse(source, table.load(), NO_FILES, before)
    assert shown(again) == shown(analyse(source, table.load(), NO_FILES))
    assert len(found(again)) == 2
    assert not again.limits


def test_a_fault_in_putting_the_paths_of_a_function_together_costs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from gradguard.engine.driver import merging

    own = merging.merged
    monkeypatch.setattr(
        merging, "merged", lambda paths: own(paths) if all(path.survived for path in paths) else 1 / 0
    )
    analysis = run(
        "def faulty(x):\n    raise ValueError\n"
        + BAD.format(name="other")
        + "def raises(x):\n    print(x)\n    raise ValueError\n"
    )
    assert found(analysis) == [(6, "GG101", "certain")]
    assert told(analysis) == [8]


def test_a_fault_in_an_imported_module_that_is_asked_for_late_costs_its_statement(broken: Exception) -> None:
    lib = "def makes():\n    return torch.erf(1)\nN = makes()\nclass C:\n    n = torch.erf(2)\n" + BAD.format(
        name="spoils"
    )
    text = "from lib import C, N, spoils\ndef f():\n    return N\ndef g():\n    return C.n\ndef h(x):\n    spoils(x)\n"
    analysis = run(text, lib=lib)
    assert [each.span.line for each in registry.findings(analysis)] == [9]
    assert {limit.span.line for limit in analysis.limits} == {1}


def test_an_interrupt_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setitem(library.REGISTRY.torch, "torch.erf", stopped)
    with pytest.raises(KeyboardInterrupt):
        run("N = torch.erf(1)\n")


def test_what_memory_was_short_for_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the fault nor its traceback keeps what the engine had made by then."""
    import gc
    import weakref

    class Much:
        pass

    made: list[weakref.ref[Much]] = []

    def fails(*_: object) -> object:
        much = Much()
        made.append(weakref.ref(much))
        raise MemoryError

    monkeypatch.setitem(library.REGISTRY.torch, "torch.erf", fails)
    analysis = run("def faulty(x):\n    return torch.erf(x)\n" + BAD.format(name="other"))
    gc.collect()
    assert [each() for each in made] == [None] * len(made)
    assert found(analysis) == [(6, "GG101", "certain")]
