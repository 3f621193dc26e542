"""No name and no message is obeyed by the terminal or the build that reads what a command says."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gradguard.check.catalogue import RuleInfo
from gradguard.cli import output
from gradguard.cli.formats import github, gitlab, sarif, text
from gradguard.cli.formats import json as json_format
from gradguard.cli.result import Outcome, Trouble
from gradguard.findings import Limit, Related, Severity
from gradguard.main import main
from tests.cli.outcomes import SAVED
from tests.cli.running import RAISES, SERVER
from tests.hostile.alphabet import TEXTS, acting, commands, without_colours

NAMES = TEXTS.filter(lambda name: name and "\0" not in name)

BAD_NAMES = [
    "a\n::error file=b.py::pwned.py",
    "::error ::hi.py",
    "  ::add-mask::x.py",
    "x##[add-mask]secret.py",
    "##vso[task.setvariable variable=A]b.py",
    "\x1b[2J\x07.py",
    "\r::notice ::r.py",
    "\u202egnp.\u2028x\x9b.py",
    "한국어 🏴\u200d☠️.py",
]  # fmt: skip
linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere such names cannot be given to files")


@st.composite
def outcomes(draw: st.DrawFn) -> tuple[Outcome, str]:
    """An outcome full of such texts, and one line of source."""
    findings = []
    for _ in range(draw(st.integers(1, 3))):
        related = (
            Related(draw(NAMES), SAVED.span, draw(TEXTS)),
            Related(SAVED.path, SAVED.span, draw(TEXTS)),
        )
        fix = replace(SAVED.fixes[0], title=draw(TEXTS))
        finding = replace(SAVED, path=draw(NAMES), message=draw(TEXTS), related=related, fixes=(fix,))
        findings.append(replace(finding, notes=(draw(TEXTS),), severity=draw(st.sampled_from(Severity))))
    line = draw(TEXTS)
    edits = (((SAVED.span, draw(TEXTS)),),)
    return Outcome(
        tuple(findings),
        (edits,) * len(findings),
        (Limit(draw(NAMES), SAVED.span, draw(TEXTS), draw(TEXTS)),),
        (Trouble(draw(NAMES), draw(TEXTS), draw(st.integers(0, 3))),),
        torch=draw(TEXTS),
        strict=draw(st.booleans()),
    ), line


def check(shown: str, meant: int = 0, keep: str = "\n") -> None:
    """Nothing acts in what was printed, and there are as many commands in it as were meant."""
    assert not acting(shown, keep), shown
    assert len(commands(shown)) == meant, commands(shown)


@given(outcomes())
def test_text_has_the_lines_that_it_means(given: tuple[Outcome, str]) -> None:
    outcome, line = given
    lines = ["".join(piece for piece, _ in each) for each in text.render(outcome, lambda path, number: line)]
    for each in lines:
        check(each, keep="")
    heads = [each for each in lines if " GG101 inplace-on-saved-tensor: " in each]
    assert len(heads) == len(outcome.findings)


@given(outcomes())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_colours_are_all_that_a_terminal_acts_on(
    monkeypatch: pytest.MonkeyPatch, given: tuple[Outcome, str]
) -> None:
    outcome, line = given
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    wanted = Namespace(format="text", output=None, statistics=True, color="always")
    output.write(outcome, wanted, lambda path, number: line)
    monkeypatch.undo()
    assert "\x1b[" in stream.getvalue()
    check(without_colours(stream.getvalue()))


@given(outcomes())
def test_github_has_one_command_for_each_finding_and_trouble(given: tuple[Outcome, str]) -> None:
    outcome, _ = given
    shown = github.render(outcome)
    expected = [each.path for each in (*outcome.findings, *outcome.troubles, *outcome.parts_lost)]
    check(shown, meant=len(expected))
    for line, path in zip(shown.splitlines(), expected):
        _, _, rest = line.partition(" file=")
        name = rest.split(",")[0].split("::")[0]
        for code, char in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
            name = name.replace(code, char)
        if path.replace("\r", "").replace("\n", "").isprintable() and "##" not in path:
            assert name == path


@given(outcomes())
def test_json_gives_the_names_back(given: tuple[Outcome, str]) -> None:
    outcome, _ = given
    shown = json_format.render(outcome)
    check(shown)
    document = json.loads(shown.encode("utf-8", "backslashreplace"))
    assert [each["file"] for each in document["findings"]] == [each.path for each in outcome.findings]
    assert [each["message"] for each in document["findings"]] == [each.message for each in outcome.findings]
    assert document["errors"][0]["file"] == outcome.troubles[0].path


@given(outcomes())
def test_sarif_gives_the_names_back(given: tuple[Outcome, str]) -> None:
    outcome, line = given
    rules = [RuleInfo("GG101", "inplace-on-saved-tensor", "", True)]
    shown = sarif.render(
        outcome, lambda path, number: line, rules, lambda name: "# page", lambda name: "https://a.example"
    )
    check(shown)
    results = json.loads(shown.encode("utf-8", "backslashreplace"))["runs"][0]["results"]
    for result, finding in zip(results, outcome.findings):
        uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert os.fsdecode(unquote_to_bytes(uri.removeprefix("file://"))) == finding.path
        assert result["relatedLocations"][0]["message"]["text"] == finding.related[0].message


@given(outcomes())
def test_gitlab_gives_the_names_back(given: tuple[Outcome, str]) -> None:
    outcome, line = given
    shown = gitlab.render(outcome, lambda path, number: line)
    check(shown)
    issues = json.loads(shown.encode("utf-8", "backslashreplace"))
    assert [each["location"]["path"] for each in issues] == [each.path for each in outcome.findings]


# Whole commands


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of files with such names, each with a mistake; the working folder."""
    for name in ("CI", "TF_BUILD", "TEAMCITY_VERSION", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "project\n::error ::x"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    for name in BAD_NAMES:
        (folder / name).write_text(RAISES, "utf-8")
    (folder / "\x1b]0;t\x07broken.py").write_text("import torch\nx = = 1  ##[error]x\n", "utf-8")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def say(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[str, str]]:
    """Runs a command; what it wrote to stdout and stderr."""

    def said(*words: str) -> tuple[str, str]:
        with contextlib.suppress(SystemExit):
            main(list(words))
        sys.stdout.flush()
        out, err = capfd.readouterr()
        return out, err

    return said


Say = Callable[..., tuple[str, str]]


@linux
@pytest.mark.parametrize(
    "words",
    [
        ("-v", "--statistics"),
        ("--all", "--color", "always"),
        ("--format", "json"),
        ("--format", "sarif"),
        ("--format", "gitlab"),
        ("--write-baseline", "b\n::error ::x.json"),
        ("--fix", "--unsafe-fixes"),
    ],
)
def test_a_report_on_such_files_is_obeyed_by_nobody(hostile: Path, say: Say, words: tuple[str, ...]) -> None:
    out, err = say("check", "--no-cache", ".", *words)
    check(without_colours(out))
    check(err)
    assert "broken.py" in out + err


@linux
def test_annotations_of_such_files_are_as_many_as_the_files(hostile: Path, say: Say) -> None:
    out, err = say("check", "--no-cache", ".", "--format", "github")
    check(out, meant=len(BAD_NAMES) + 1)
    check(err)
    assert "file=a%0A%3A%3Aerror file=b.py%3A%3Apwned.py,line=5" in out


@pytest.mark.parametrize(
    "words",
    [
        ("check", "no\x1b[31m\n::error ::x.py"),
        ("check", "--no\x1b\n::error ::x"),
        ("check", "--jobs", "\x07\n::error ::x"),
        ("check", "--select", "\x9b\n::error ::x"),
        ("check", "--torch", "\x1b\n::error ::x"),
        ("check", "--baseline", "\x1b\n::error ::x"),
        ("check", "--output", "no/\x1b\n::error ::x"),
        ("check", "--changed-since", "\x1b\n::error ::x"),
        ("\x1b\n::error ::x",),
        ("explain", "\x1b\n::error ::x"),
        ("explain", "GG101", "--torch", "\x1b\n::error ::x"),
        ("ops", "\x1b\n::error ::x"),
        ("ops", "add", "--torch", "\x1b\n::error ::x"),
        ("verify", "\x1b\n::error ::x"),
        ("verify", "clean.py::\x1b\n::error ::x"),
        ("run", "\x1b\n::error ::x"),
        ("run", "--\x1b\n::error ::x", "a.py"),
        ("run", "--output", "\x1b\n::error ::x/y", "a.py"),
        ("run", "-m", "\x1b\n::error ::x"),
        ("server", "--log-level", "\x1b\n::error ::x"),
        ("server", "--\x1b\n::error ::x"),
    ],
)  # fmt: skip
def test_a_refusal_is_obeyed_by_nobody(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, say: Say
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("clean.py").write_text("x = 1\n")
    subprocess.run(["git", "init", "-q"], check=True)
    out, err = say(*words)
    assert "x" in out + err
    check(out)
    check(err)


@pytest.mark.parametrize(
    "settings",
    [
        '"\\u001b\\n::error ::x" = 1',
        'select = ["\\u001b\\n::error ::x"]',
        '[tool.gradguard.rules]\n"\\n::error ::x" = "on"',
        "= \x07",
    ],
)
def test_a_refused_setting_is_obeyed_by_nobody(
    settings: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, say: Say
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("clean.py").write_text("x = 1\n")
    Path("pyproject.toml").write_text(f"[tool.gradguard]\n{settings}\n")
    out, err = say("check")
    assert "pyproject.toml" in err
    check(out)
    check(err)


def test_an_internal_error_is_obeyed_by_nobody(monkeypatch: pytest.MonkeyPatch, say: Say) -> None:
    def fails(arguments: object) -> int:
        raise RuntimeError("\x1b\n::error ::x\n##[error]y")

    monkeypatch.setattr("gradguard.cli.check.run", fails)
    for _ in range(2):
        out, err = say("check")
        assert (out, err.count("internal error: RuntimeError: ")) == ("", 1)
        check(err)
        monkeypatch.setenv("GRADGUARD_TRACEBACK", "1")


def test_every_word_on_stderr_goes_one_way() -> None:
    """What is printed there comes from `tell`, or is printable in its own right."""
    wrong = []
    for path in sorted((SERVER / "gradguard").rglob("*.py")):
        if path.relative_to(SERVER / "gradguard").parts[0] not in ("cli", "lsp", "runtime", "disk"):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or ast.unparse(node.func) != "print":
                continue
            what = ast.unparse(node.args[0])
            if not what.startswith(("printable", "'\\n'.join(map(printable")) and what not in _OURS:
                wrong.append(f"{path}:{node.lineno} prints {what}")
    assert not wrong, "\n".join(wrong)


_OURS = {
    "'\\n'.join(lines)",  # the hint: codes and names of rules
    "_json(known, pattern)",
    "'\\n'.join(_table(lines, width, colour) or _records(lines, width, colour))",
    "'listening on {}:{}'.format(*server.getsockname()[:2])",
    "self.troubles[-1]",  # for who looks for faults of the monitor
    "error.code",  # the program's own word
    "f'gradguard: {WORDS}'",
    "'gradguard: no cell was watched yet; begin one with %%gradguard'",
    "monitor",  # its report, printable in its own right
    "text_report(self._last)",
    "f'gradguard: cannot write {words[0]}: {error.strerror}'",  # what the user has just typed
}
"""What is printed without going through it: none of it is anybody else's."""


# Diffs

ACTING = RAISES.replace("y.add_(1)", "s = '''\n::error ::x\n'''\ny.add_(1)  # \x1b[31m ##vso[task.complete]")


def diff(
    folder: Path, stdout: Any = subprocess.PIPE, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    plain = {
        key: value for key, value in os.environ.items() if key not in ("CI", "TF_BUILD", "TEAMCITY_VERSION")
    }
    return subprocess.run(
        [sys.executable, "-m", "gradguard", "check", "--diff", "--unsafe-fixes", "."],
        cwd=folder,
        env={**plain, "PYTHONPATH": str(SERVER), "PYTHONUTF8": "1", **environment},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=120,
        check=False,
    )


@linux
@pytest.mark.parametrize("tool", [("git", "apply"), ("patch", "-p1", "--quiet")], ids=lambda tool: tool[0])
def test_a_diff_can_be_applied_whatever_files_are_called(tmp_path: Path, tool: tuple[str, ...]) -> None:
    names = [*BAD_NAMES, 'quo"te\\.py', "tab\tbed.py", "two  words.py", os.fsdecode(b"caf\xe9.py")]
    for name in names:
        (tmp_path / name).write_text(ACTING if name == BAD_NAMES[0] else RAISES, "utf-8")
    made = diff(tmp_path)
    assert made.stderr == f"gradguard: would fix {len(names)} findings\n".encode()
    assert not acting(made.stdout.decode(), "\n\t\x1b")
    done = subprocess.run(tool, cwd=tmp_path, input=made.stdout, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    for name in names:
        assert "y.add_(1)" not in (tmp_path / name).read_text("utf-8")
    assert diff(tmp_path).stdout == b""


@pytest.mark.parametrize("variable", ["CI", "TF_BUILD", "TEAMCITY_VERSION"])
def test_a_build_reads_a_diff_and_obeys_nothing(tmp_path: Path, variable: str) -> None:
    (tmp_path / "a.py").write_text(ACTING)
    shown = diff(tmp_path, **{variable: "true"})
    check(shown.stdout.decode())
    assert b"shown with escapes; in a file it can be applied" in shown.stderr
    with (tmp_path / "kept.diff").open("wb") as file:
        kept = diff(tmp_path, file, **{variable: "true"})
    assert b"escapes" not in kept.stderr
    assert (tmp_path / "kept.diff").read_bytes() == diff(tmp_path).stdout
    assert "\x1b[31m ##vso[task.complete]" in (tmp_path / "kept.diff").read_text()


@linux
def test_a_terminal_shows_a_diff_and_acts_on_nothing(tmp_path: Path) -> None:
    import pty

    (tmp_path / "a.py").write_bytes(ACTING.replace("\n", "\r\n").encode())
    ours, theirs = pty.openpty()
    done = diff(tmp_path, theirs)
    os.close(theirs)
    with open(ours, "rb") as file:
        shown = file.read1(1 << 16).decode()
    check(shown, keep="\n\r")
    assert r"# \x1b[31m ##\vso[task.complete]" in shown
    assert b"escapes" in done.stderr


def test_where_a_diff_goes_decides_whether_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    assert not output.obeyed(io.StringIO())
    assert output.obeyed(SimpleNamespace(isatty=lambda: True))  # type: ignore[arg-type]
