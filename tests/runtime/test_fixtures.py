"""Every fixture and every example of a page is judged by plain torch and by the monitor, and the two agree."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.fixtures.functions import FIXTURES, LEAKS, RAISES, READS, SILENT, cases
from tests.oracle.pool import Died, shared_pool
from tests.rules.pages import english, read
from tests.runtime.generated import TEXTS, Program

# Nothing that one run shows: a gradient kept under two names, an input that a module writes.
ONLY_READ = {"GG111", "GG112"}
MARKED = (RAISES | SILENT | LEAKS | READS) - ONLY_READ
# Mistakes that the monitor tells at another line, or not: what runs in a pool's threads it does not see being saved, and of
# losses that share a forward it names the forward. Within `torch.func` the tensors that reach it are without the graph that
# the transform records, so it names the call of the transform.
TOLD_ELSEWHERE = {
    "python_iterators-threads_bad", "freed-losses_of_one_forward_bad", "freed-heads_of_one_body_bad",
    *(f"differentiating-{name}_bad" for name in (
        "gradient", "gradient_and_value", "the_second_argument", "with_something_beside", "parameters_in_a_dict",
        "rows_of_gradients", "curvature", "a_gradient_for_each_example", "a_gradient_of_a_gradient",
    )),
}  # fmt: skip
# The compiler takes longer than any program here may.
TOO_LONG = {"item-in-compiled-code Example 1"}


def groups() -> dict[str, list[Program]]:
    """Programs by file or folder. Marks count for functions only: elsewhere they may stand on one of several lines."""
    found: dict[str, list[Program]] = {}
    for case in cases():
        told = str(case) not in TOLD_ELSEWHERE
        marks = {(line, code) for line, code in case.marks if told and code in MARKED}
        found.setdefault(f"{case.path.parent.name}/{case.path.stem}", []).append(
            (str(case), case.program, marks)
        )
    for folder in (FIXTURES / "fuzz", *sorted((FIXTURES / "fixes").iterdir())):
        for path in sorted(folder.glob("*.py")):
            found.setdefault(folder.name, []).append((path.stem, path.read_text("utf-8"), set()))
    for page in map(read, english()):
        for section in ("Example", "Use instead"):
            for number, text in enumerate(page.programs(section), 1):
                name = f"{page.name} {section} {number}"
                if name not in TOO_LONG:
                    found.setdefault("pages", []).append((name, text, set()))
    return found


GROUPS = groups()


def test_no_folder_is_left_out() -> None:
    inside = {path.name for path in FIXTURES.iterdir() if path.is_dir() and path.name != "__pycache__"}
    # `cases`, `offers` and `playground` have tests of their own, and `demo` is one long script for editors.
    assert {"cases", "demo", "fixes", "fuzz", "graph", "inplace", "offers", "playground"} == inside
    assert sum(map(len, GROUPS.values())) > 600


@pytest.mark.parametrize("group", GROUPS)
def test_monitor_and_torch_agree(group: str) -> None:
    answer = shared_pool().call(TEXTS, timeout=900.0, programs=GROUPS[group], lines=group == "fuzz")
    assert not isinstance(answer, Died), answer
    outcomes, differences = answer
    assert not differences, "\n\n".join(f"{d.name}: {d.what}\n{d.detail}\n{d.text}" for d in differences[:5])
    assert "discard" not in outcomes
    assert Counter(outcomes).total() == len(GROUPS[group])
