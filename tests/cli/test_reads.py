"""Every file that is not read is said, and costs nothing but itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jsonschema
import pytest

from gradguard.check.settings import Settings
from gradguard.cli import discover
from gradguard.cli.configuration import Configuration
from gradguard.cli.result import Trouble, Unread
from gradguard.cli.worker import Checker, Job
from tests.cli.running import CLEAN, LINE, RAISES, Done, Runner
from tests.cli.test_formats import SCHEMA
from tests.cli.unreadable import KINDS, USES, make

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="special files and odd names")

FOUND = "gradguard: warning: not read: "
NAMED = "gradguard: error: "


def said(done: Done, before: str = FOUND) -> dict[str, str]:
    """Reasons by path of what stands on stderr."""
    lines = [line for line in done.err.splitlines() if line.startswith(before)]
    assert len(lines) == len(set(lines))
    return dict(line.removeprefix(before).split(": ", 1) for line in lines)


@pytest.fixture
def littered(gradguard: Runner) -> Runner:
    """A project with one of each, in places of every kind."""
    folder = gradguard.folder
    make(folder)
    for name in ("a_folder.py", "ignores", "settings", "vendor"):
        (folder / name).mkdir()
    (folder / "a_folder.py" / "inside.py").write_text(CLEAN)
    os.mkfifo(folder / "ignores" / ".gitignore")
    (folder / "ignores" / "fine.py").write_text(CLEAN)
    (folder / "settings" / "pyproject.toml").symlink_to("pyproject.toml")
    (folder / "settings" / "fine.py").write_text(CLEAN)
    (folder / "pyproject.toml").write_text('[tool.gradguard]\nexclude = ["vendor/"]\n')
    make(folder / "vendor", "pipe.py", "large.py", "long.py", "circle.py", "latin1.py")
    imports = "".join(
        f"import vendor.{name}\n" for name in ("pipe", "large", "long", "circle", "latin1", "missing")
    )
    gradguard.write(fine=CLEAN, train=imports + RAISES)
    (folder.parent / "elsewhere.py").write_text(USES)
    (folder / "out.py").symlink_to("../elsewhere.py")
    (folder / "others").symlink_to("..")
    (folder / "same").symlink_to("a_folder.py")
    return gradguard


def expected() -> dict[str, str]:
    reasons = {name: reason for name, (_, reason) in KINDS.items() if "\udce9" not in name}
    vendored = {
        f"vendor/{name}": KINDS[name][1]
        for name in ("pipe.py", "large.py", "long.py", "circle.py", "latin1.py")
    }
    return {
        **reasons,
        **vendored,
        "caf\\udce9.py": "a named pipe, not a file",
        "ignores/.gitignore": "a named pipe, not a file",
        "settings/pyproject.toml": "symbolic links that lead in a circle; its settings are not in force",
        "out.py": "a link that leads out of the project",
        "others": "a link that leads out of the project",
    }


def test_each_of_a_folder_is_named_and_counted_and_the_others_are_checked(littered: Runner) -> None:
    wanted = expected()
    for words in (("--jobs", "1"), ("--jobs", "2"), ()):  # the last time from the cache
        done = littered("check", *words)
        reasons = said(done)
        assert reasons.keys() == wanted.keys()
        assert not {path: why for path, why in reasons.items() if wanted[path] not in why}
        assert reasons["vendor/large.py"].endswith("(imported)")
        assert "Traceback" not in done.err
        assert done.code == 1
        assert f"train.py:{LINE + 6}:1: error GG101" in done.out
        files = f"{len(wanted) - 1} files, 1 folder not read"
        assert f"in 5 files using torch of 5 read; {files}\n" in done.out


def test_each_stands_in_every_form_that_has_a_place_for_it(littered: Runner) -> None:
    wanted = expected()
    document = littered("check", "--format", "json")
    assert document.code == 1
    assert {each["file"].replace("\udce9", "\\udce9") for each in document.json["errors"]} == wanted.keys()
    sarif = littered("check", "--format", "sarif").json
    jsonschema.validate(sarif, json.loads(SCHEMA.read_text("utf-8")))
    (invocation,) = sarif["runs"][0]["invocations"]
    assert invocation["executionSuccessful"]
    levels = [each["level"] for each in invocation["toolExecutionNotifications"]]
    assert levels.count("warning") == len(wanted)
    littered("check", "--format", "github", "--output", "report")
    github = (littered.folder / "report").read_bytes().splitlines()
    assert sum(line.startswith(b"::warning ") and b"could not check" in line for line in github) == len(
        wanted
    )
    assert littered("check", "--format", "gitlab").code == 1


def test_what_is_found_fails_a_strict_run(littered: Runner) -> None:
    done = littered("check", "--strict", "--exit-zero")
    assert done.code == 2
    assert said(done, NAMED).keys() == expected().keys()


def test_those_that_are_named_make_exit_code_2_and_the_others_are_checked(gradguard: Runner) -> None:
    make(gradguard.folder)
    gradguard.write(train=RAISES)
    names = [name for name in KINDS if "\udce9" not in name]
    done = gradguard("check", *names, "train.py", "--format", "json")
    assert (done.code, done.found) == (2, [("train.py", "GG101", LINE)])
    reasons = said(done, NAMED)
    assert reasons.keys() == set(names)
    assert not {path: why for path, why in reasons.items() if KINDS[path][1] not in why}
    checker = Checker(None)
    for name in names:
        (trouble,) = checker.check(Job(str(gradguard.folder / name), Settings(), named=True)).troubles
        assert trouble.blocks


def test_a_link_that_is_named_is_read_wherever_it_leads(gradguard: Runner) -> None:
    (gradguard.folder.parent / "elsewhere.py").write_text(RAISES)
    (gradguard.folder / "out.py").symlink_to("../elsewhere.py")
    assert gradguard("check", "out.py", "--format", "json").found == [("out.py", "GG101", LINE)]
    (gradguard.folder / "folder").symlink_to("..")
    done = gradguard("check", "folder", "--format", "json")
    assert [path for path, _, _ in done.found] == ["folder/elsewhere.py", "folder/project/out.py"]


def test_links_in_the_project_are_read(gradguard: Runner) -> None:
    for name in (".git", "asked", "beside"):
        (gradguard.folder / name).mkdir()
    (gradguard.folder / "beside" / "a.py").write_text(RAISES)
    (gradguard.folder / "asked" / "link.py").symlink_to("../beside/a.py")
    assert gradguard("check", "asked", "--format", "json").found == [("asked/link.py", "GG101", LINE)]


def test_text_that_hides_the_word_by_its_encoding_is_read(gradguard: Runner) -> None:
    text = "# coding: utf-7\n" + RAISES.replace("torch", "t+AG8-rch")
    (gradguard.folder / "hidden.py").write_text(text)
    assert gradguard("check", "--format", "json").found == [("hidden.py", "GG101", LINE + 1)]


def test_folders_too_deep_to_be_named_are_told(gradguard: Runner) -> None:
    gradguard.write(train=RAISES)
    build = "import os\nfor _ in range(3_000):\n    os.mkdir('d' * 20)\n    os.chdir('d' * 20)\n"
    deep = gradguard.folder / "deep"
    deep.mkdir()
    try:
        subprocess.run([sys.executable, "-c", build], cwd=deep, check=True)
        done = gradguard("check", "--format", "json")
        assert done.found == [("train.py", "GG101", LINE)]
        assert done.code == 1
        reasons = {reason for path, reason in said(done).items() if path.startswith("deep/")}
        assert {reason.split(";")[0] for reason in reasons} == {os.strerror(36)}
        # A folder far below is no reason to climb up one call at a time.
        far = deep.joinpath(*["d" * 20] * 150)
        (far / "x.py").write_text(RAISES)
        assert len(gradguard("check", str(far), "--format", "json").found) == 1
    finally:
        subprocess.run(["rm", "-rf", str(deep)], check=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 100_000, "not a gradguard baseline"),
        ('{"gradguard-baseline": ' + "1" * 5_000 + "}", "not a gradguard baseline"),
        ('{"gradguard-baseline": 1, "findings": {"a": 1}}', "not a gradguard baseline"),
        (None, "a named pipe, not a file"),
    ],
)
def test_a_baseline_that_cannot_be_read_is_named(gradguard: Runner, text: str | None, message: str) -> None:
    path = gradguard.folder / "known.json"
    if text is None:
        os.mkfifo(path)
    else:
        path.write_text(text)
    done = gradguard("check", "--baseline", "known.json")
    assert (done.code, done.err) == (2, f"gradguard: error: known.json: {message}\n")


def test_a_text_on_stdin_without_end_is_refused(gradguard: Runner) -> None:
    words = 'ulimit -v 3000000; exec "$0" -m gradguard check - < /dev/zero'
    done = subprocess.run(
        ["sh", "-c", words, sys.executable],
        cwd=gradguard.folder,
        env=gradguard.environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    message = "stdin: larger than 16 MB, which is as much as is read"
    assert (done.returncode, done.stderr) == (2, f"gradguard: error: {message}\n")


def test_a_working_folder_that_is_gone_is_named(gradguard: Runner) -> None:
    words = 'mkdir gone; cd gone; rmdir ../gone; exec "$0" -m gradguard check'
    done = subprocess.run(
        ["sh", "-c", words, sys.executable],
        cwd=gradguard.folder,
        env=gradguard.environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    message = f"the working folder cannot be used: {os.strerror(2)}"
    assert (done.returncode, done.stderr) == (2, f"gradguard: error: {message}\n")


# What the system refuses


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may read everything; for a while it is not root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def told(top: Path) -> tuple[list[str], list[Trouble]]:
    """Files that are found, and what is told of others, read or not."""
    troubles: list[Trouble] = []
    configuration = Configuration({})
    targets = discover.discover([str(top)], configuration.of, troubles.append)
    checker = Checker(None)
    for target in targets:
        done = checker.check(Job(str(target.path), configuration.of(target.path.parent), target.named))
        troubles += [*done.troubles, *done.imported]
    return [target.path.name for target in targets], troubles + configuration.troubles


def test_what_permissions_forbid_is_told() -> None:
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        top.chmod(0o755)
        for folder in ("closed", "open"):
            (top / folder).mkdir()
            (top / folder / "a.py").write_text(USES)
        (top / "secret.py").write_text(USES)
        (top / "reads.py").write_text("import torch\nimport open.secret\n")
        (top / "open" / "secret.py").symlink_to("../secret.py")
        (top / "open" / ".gitignore").write_text("a.py\n")
        told(top)  # loads what others may not read
        (top / "pyproject.toml").write_text("[tool.gradguard]\nexclude = ['*']\n")
        for path in ("closed", "secret.py", "open/.gitignore", "pyproject.toml"):
            (top / path).chmod(0)
        try:
            with as_nobody():
                found, troubles = told(top)
                _, named = told(top / "closed")
        finally:
            (top / "closed").chmod(0o755)
        why = "Permission denied"
        assert found == ["a.py", "secret.py", "reads.py", "secret.py"]
        assert {
            (os.path.relpath(each.path, top), each.message, each.unread, each.blocks) for each in troubles
        } == {
            ("closed", why, Unread.FOLDER, False),
            ("secret.py", why, Unread.FILE, False),
            ("open/secret.py", why, Unread.FILE, False),
            ("open/secret.py", f"{why} (imported)", Unread.FILE, False),
            ("open/.gitignore", why, Unread.FILE, False),
            ("pyproject.toml", f"{why}; its settings are not in force", Unread.FILE, False),
        }
        assert [each.blocks for each in named if each.unread is Unread.FOLDER] == [True]


def test_a_folder_that_ends_amid_the_walk_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("gone", "stays"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text(USES)
    scan = os.scandir

    def refuse(path: str) -> object:
        if path.endswith("gone"):
            raise OSError(5, "Input/output error")
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found, troubles = told(tmp_path)
    assert found == ["a.py"]
    assert [str(each) for each in troubles] == [f"{tmp_path / 'gone'}: Input/output error"]


def test_a_mount_that_leads_back_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    again = tmp_path / "a" / "again"
    again.mkdir(parents=True)
    (tmp_path / "a" / "x.py").write_text(USES)
    (again / "y.py").write_text(USES)
    look = os.stat
    monkeypatch.setattr(
        os, "stat", lambda path, **how: look(again.parent if str(path) == str(again) else path, **how)
    )
    troubles: list[Trouble] = []
    found = discover.discover([str(tmp_path)], lambda folder: Settings(), troubles.append)
    assert [target.path.name for target in found] == ["x.py"]
    assert [str(each) for each in troubles] == [f"{again}: the same folder as {again.parent}"]


def test_a_baseline_holds_names_that_are_no_utf8(gradguard: Runner) -> None:
    (gradguard.folder / os.fsdecode(b"caf\xe9.py")).write_text(RAISES)
    assert gradguard("check", "--write-baseline", "old.json").code == 0
    assert (
        json.loads((gradguard.folder / "old.json").read_text("utf-8"))["findings"][0]["file"]
        == "caf\udce9.py"
    )
    done = gradguard("check", "--baseline", "old.json")
    assert (done.code, "1 in the baseline" in done.out) == (0, True), done
