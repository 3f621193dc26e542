"""Fixes are written whole, in the form of the file, and only where they help."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from gradguard.check.api import Report
from gradguard.check.settings import Settings
from gradguard.cli import fix
from gradguard.cli.worker import Checker, Job
from gradguard.disk.reading import Unreadable
from gradguard.findings import Applicability, Certainty, Finding, FixPlan, Limit, Severity, Span
from gradguard.source.text import Source
from tests.cli.running import CLEAN, LINE, RAISES, Runner


@dataclass(frozen=True)
class Edit:
    span: Span
    replacement: str


Rewrite = Callable[[str], str]


class Mechanic(Checker):
    """Finds each line that says `bad`; its fix rewrites the line as `rewrite` says."""

    def source_checked(self, job: Job, source: Source) -> Report:
        lines = [n for n in range(1, source.lines.count + 1) if "bad" in source.line(n)]
        return Report(tuple(self._finding(job.path, source, line) for line in lines))

    def _finding(self, path: str, source: Source, line: int) -> Finding:
        span = Span(line, 1, line, len(source.line(line)) + 1)
        safety = Applicability.UNSAFE if "unsafe" in source.line(line) else Applicability.SAFE
        plan = FixPlan("test", "title", safety, span)
        return Finding(path, span, "GG101", "n", Severity.ERROR, Certainty.CERTAIN, "m", fixes=(plan,))


@pytest.fixture
def rewrite(monkeypatch: pytest.MonkeyPatch) -> Callable[[Rewrite], None]:
    def install(how: Rewrite) -> None:
        api = ModuleType("gradguard.fixes.api")
        api.edits = lambda plan, source: (Edit(plan.span, how(source.slice(plan.span))),)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "gradguard.fixes.api", api)
        monkeypatch.setattr("gradguard.fixes.api", api, raising=False)

    return install


def fixed(data: bytes, *, unsafe: bool = False) -> fix.Fixed:
    return fix.fix(Job("/x/a.py", Settings(), data=data), Mechanic(None), unsafe=unsafe)


def test_safe_ones_only_unless_told(rewrite: Callable[[Rewrite], None]) -> None:
    rewrite(lambda line: line.replace("bad", "good"))
    data = b"bad()\nunsafe_bad()\n"
    assert fixed(data).after == "good()\nunsafe_bad()\n"
    assert (fixed(data, unsafe=True).after, fixed(data, unsafe=True).count) == ("good()\nunsafe_good()\n", 2)


def test_line_ends_mark_and_encoding_stay(rewrite: Callable[[Rewrite], None]) -> None:
    rewrite(lambda line: "one\ntwo")
    done = fixed(b"\xef\xbb\xbfx = 1\r\nbad()\r\n")
    assert done.before.encode(done.after) == b"\xef\xbb\xbfx = 1\r\none\r\ntwo\r\n"
    rewrite(lambda line: "good()")
    done = fixed("# coding: latin-1\n# ä\nbad()\n".encode("latin-1"))
    assert done.before.encode(done.after) == "# coding: latin-1\n# ä\ngood()\n".encode("latin-1")


def test_a_fix_that_does_not_help_is_not_made(rewrite: Callable[[Rewrite], None]) -> None:
    for useless in ("bad(1)", "(", "bad()\nbad()"):
        rewrite(lambda line, text=useless: text)  # type: ignore[misc]
        assert (fixed(b"bad()\n").after, fixed(b"bad()\n").count) == ("bad()\n", 0)


def test_a_fix_that_spoils_all_is_left_out_alone(rewrite: Callable[[Rewrite], None]) -> None:
    rewrite(lambda line: "(" if "worst" in line else "good()")
    assert fixed(b"bad()\nbad_worst()\nbad()\n").after == "good()\nbad_worst()\ngood()\n"


def test_a_fault_in_one_fix_costs_that_fix(rewrite: Callable[[Rewrite], None]) -> None:
    def how(line: str) -> str:
        if "worst" in line:
            raise ZeroDivisionError
        return "good()"

    rewrite(how)
    done = fixed(b"bad()\nbad_worst()\nbad()\n")
    assert done.after == "good()\nbad_worst()\ngood()\n"
    assert [(each.span.line, each.message) for each in done.report.faults] == [
        (2, "a fix cannot be written: internal error ZeroDivisionError in how; please report it")
    ]


def test_what_a_fault_hides_is_not_repaired(rewrite: Callable[[Rewrite], None]) -> None:
    class Blinded(Mechanic):
        def source_checked(self, job: Job, source: Source) -> Report:
            report = super().source_checked(job, source)
            fault = Limit(job.path, Span(1, 1, 1, 1), "internal error", "Traceback")
            return Report().with_limits([fault]) if "good" in source.text else report

    rewrite(lambda line: "good()")
    job = Job("/x/a.py", Settings(), data=b"bad()\n")
    assert fix.fix(job, Blinded(None), unsafe=False).after == "bad()\n"


def test_a_file_that_does_not_parse_is_not_fixed(rewrite: Callable[[Rewrite], None]) -> None:
    rewrite(lambda line: "good()")
    assert fixed(b"bad()\nx = (\n").count == 0


def test_the_diff_can_be_applied(rewrite: Callable[[Rewrite], None], tmp_path: Path) -> None:
    import subprocess

    rewrite(lambda line: line.replace("bad", "good"))
    before = "a = 1\ns = '\u2028\x0c'\nbad()\r\nz = 2"
    (tmp_path / "a.py").write_bytes(before.encode())
    done = fixed(before.encode())
    diff = "".join(done.diff("a.py")).encode()
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=diff, check=True)
    assert (tmp_path / "a.py").read_bytes() == done.after.encode()


def test_a_file_that_changed_meanwhile_is_left_alone(
    rewrite: Callable[[Rewrite], None], tmp_path: Path
) -> None:
    rewrite(lambda line: "good()")
    file = tmp_path / "a.py"
    file.write_bytes(b"bad()\n")
    done = fix.fix(Job(str(file), Settings()), Mechanic(None), unsafe=False)
    file.write_bytes(b"edited by somebody\n")
    with pytest.raises(Unreadable, match="changed while it was being fixed; left as it is"):
        fix.write(str(file), done)
    assert file.read_bytes() == b"edited by somebody\n"
    assert os.listdir(tmp_path) == ["a.py"]


def test_a_character_that_the_encoding_lacks_leaves_the_file_alone(
    rewrite: Callable[[Rewrite], None], tmp_path: Path
) -> None:
    rewrite(lambda line: "good('漢')")
    file = tmp_path / "a.py"
    file.write_bytes(b"# coding: latin-1\nbad()\n")
    done = fix.fix(Job(str(file), Settings()), Mechanic(None), unsafe=False)
    with pytest.raises(Unreadable, match="cannot be written in the file's encoding"):
        fix.write(str(file), done)
    assert file.read_bytes() == b"# coding: latin-1\nbad()\n"


# With the real engine and its fixes


def test_fix_repairs_the_file_in_place(gradguard: Runner) -> None:
    gradguard.write(train=RAISES, good=CLEAN)
    file = gradguard.folder / "train.py"
    file.write_bytes(RAISES.replace("\n", "\r\n").encode())
    file.chmod(0o640)
    done = gradguard("check", "--fix")
    assert done.code == 0
    assert "; 1 fixed" in done.out
    data = file.read_bytes()
    assert data.count(b"\r\n") == data.count(b"\n")
    assert b"add_" not in data
    assert file.stat().st_mode & 0o777 == 0o640
    assert gradguard("check").code == 0


def test_diff_changes_nothing_and_tells_what_fix_would_do(gradguard: Runner) -> None:
    gradguard.write(train=RAISES)
    done = gradguard("check", "--diff")
    assert done.code == 1
    assert done.out.startswith("--- a/train.py\n+++ b/train.py\n")
    assert "-y.add_(1)\n" in done.out
    assert done.err == "gradguard: would fix 1 finding\n"
    assert (gradguard.folder / "train.py").read_text() == RAISES


def test_stdin_is_fixed_to_stdout(gradguard: Runner) -> None:
    done = gradguard("check", "--fix", "-", stdin=RAISES.encode())
    assert done.code == 0
    assert "add_" not in done.out
    assert "import torch" in done.out
    assert "1 fixed" in done.err
    untouched = gradguard("check", "--fix", "-", stdin=CLEAN.encode())
    assert untouched.out == CLEAN


def test_an_idle_ignore_comment_is_taken_away(gradguard: Runner) -> None:
    idle = CLEAN.replace("y = y + 1", "y = y + 1  # gradguard: ignore[GG101]")
    gradguard.write(train=idle)
    assert gradguard("check", "--format", "json").found == [("train.py", "GG901", LINE)]
    gradguard("check", "--fix")
    assert (gradguard.folder / "train.py").read_text() == CLEAN


FLAG = """import torch
from torch import nn

cell = nn.RNNCell(4, 8)
optimizer = torch.optim.SGD(cell.parameters(), lr=0.1)
state = torch.zeros(2, 8)
for _ in range(3):
    state = cell(torch.rand(2, 4), state)
    optimizer.zero_grad()
    state.square().mean().backward(retain_graph=True)
    optimizer.step()
"""


@pytest.mark.parametrize("how", ["--fix", "--diff"])
def test_why_something_is_not_fixed_is_said(how: str, gradguard: Runner) -> None:
    gradguard.write(train=FLAG)
    done = gradguard("check", "train.py", how, "--unsafe-fixes", "--select", "GG206")
    said = "note: train.py:10: not fixed: GG206, Drop `retain_graph=True`: GG203 would be found in line "
    assert said in done.err
    assert (gradguard.folder / "train.py").read_text() == FLAG


def test_one_rule_at_a_time(gradguard: Runner) -> None:
    gradguard.write(
        train=RAISES
        + "total = 0\nfor _ in range(3):\n    z = x * 2\n    z.sum().backward()\n    total += z.sum()\n"
    )
    done = gradguard("check", "train.py", "--fix", "--unsafe-fixes", "--select", "GG201")
    text = (gradguard.folder / "train.py").read_text()
    assert "total += z.sum().detach()" in text
    assert "y.add_(1)" in text
    assert "1 fixed" in done.out


def test_a_named_link_that_leads_out_of_the_project_is_not_written_through(tmp_path: Path) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside.py"
    project.mkdir()
    outside.write_text(RAISES)
    (project / "train.py").symlink_to(outside)
    (project / "inside.py").symlink_to("real.py")
    (project / "real.py").write_text(RAISES)
    done = Runner(project)("check", "train.py", "inside.py", "--fix")
    assert "train.py: not fixed: a link that leads out of the project" in done.err
    assert outside.read_text() == RAISES
    assert (project / "real.py").read_text() == CLEAN.replace("y = y + 1", "y = y.add(1)")
    assert (project / "inside.py").is_symlink()
    assert done.code == 2


def test_other_hard_links_are_said(gradguard: Runner) -> None:
    gradguard.write(train=RAISES)
    os.link(gradguard.folder / "train.py", gradguard.folder / "other.txt")
    done = gradguard("check", "train.py", "--fix")
    assert "note: train.py: the old text stays behind 1 other hard link" in done.err
    assert (gradguard.folder / "other.txt").read_text() == RAISES
    assert "y = y.add(1)" in (gradguard.folder / "train.py").read_text()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owner")
def test_a_file_of_another_user_is_named_and_left(
    rewrite: Callable[[Rewrite], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewrite(lambda line: "good()")
    file = tmp_path / "a.py"
    file.write_bytes(b"bad()\n")
    done = fix.fix(Job(str(file), Settings()), Mechanic(None), unsafe=False)
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
    with pytest.raises(Unreadable, match="it belongs to another user"):
        fix.write(str(file), done)
    assert file.read_bytes() == b"bad()\n"
