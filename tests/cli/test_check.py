"""`gradguard check` as a user runs it: exit codes, formats, what is said where."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

from tests.cli.running import CLEAN, LINE, NO_TORCH, RAISES, SERVER, Runner
from tests.cli.test_formats import SCHEMA


def test_a_finding_exits_with_1_and_is_shown_at_its_line(gradguard: Runner) -> None:
    gradguard.write(train=RAISES)
    done = gradguard("check", "train.py")
    assert done.code == 1
    assert done.out.startswith(f"train.py:{LINE}:1: error GG101 inplace-on-saved-tensor: ")
    assert f"  {LINE} | y.add_(1)" in done.out
    assert "1 finding (1 error) in 1 file using torch of 1 read" in done.out


def test_nothing_found_exits_with_0(gradguard: Runner) -> None:
    gradguard.write(train=CLEAN, other=NO_TORCH)
    done = gradguard("check")
    assert (done.code, done.err) == (0, "")
    assert done.out == "no findings in 1 file using torch of 2 read\n"


def test_the_current_folder_is_the_default_and_folders_are_walked(gradguard: Runner) -> None:
    (gradguard.folder / "pkg").mkdir()
    (gradguard.folder / "pkg" / "deep.py").write_text(RAISES)
    assert gradguard("check", "--format", "json").found == [("pkg/deep.py", "GG101", LINE)]


def test_a_folder_without_python_files_is_told(gradguard: Runner) -> None:
    done = gradguard("check")
    assert done.code == 0
    assert done.err == "gradguard: warning: no Python files and no notebooks found\n"


def test_json_has_the_agreed_shape(gradguard: Runner) -> None:
    gradguard.write(train=RAISES)
    done = gradguard("check", "--format", "json", "train.py")
    assert done.code == 1
    document = done.json
    assert set(document) == {"version", "torch", "findings", "limits", "errors"}
    assert document["torch"].startswith("2.")
    (finding,) = document["findings"]
    assert set(finding) == {
        "file", "code", "name", "severity", "certainty", "line", "column", "end_line", "end_column", "message",
        "related", "notes", "fixes",
    }  # fmt: skip
    assert (finding["severity"], finding["certainty"]) == ("error", "certain")
    assert {each["line"] for each in finding["related"]} == {4, 6}


def test_sarif_of_a_real_run_is_valid(gradguard: Runner) -> None:
    gradguard.write(train=RAISES, bad="import torch\nx = (\n")
    done = gradguard("check", "--format", "sarif")
    assert done.code == 2
    errors = list(jsonschema.Draft4Validator(json.loads(SCHEMA.read_text("utf-8"))).iter_errors(done.json))
    assert not errors, errors[0].message
    assert [result["ruleId"] for result in done.json["runs"][0]["results"]] == ["GG101"]


def test_github_and_gitlab(gradguard: Runner) -> None:
    gradguard.write(train=RAISES)
    assert gradguard("check", "--format", "github").out.startswith(f"::error file=train.py,line={LINE},")
    assert gradguard("check", "--format", "gitlab").json[0]["location"]["lines"]["begin"] == LINE


def test_the_report_goes_into_a_file(gradguard: Runner) -> None:
    gradguard.write(train=RAISES)
    done = gradguard("check", "--format", "json", "--output", "report.json")
    assert (done.code, done.out) == (1, "")
    assert json.loads((gradguard.folder / "report.json").read_text())["findings"]
    refused = gradguard("check", "--output", "no/such/folder.txt")
    assert refused.code == 2
    assert refused.err.endswith("gradguard: error: no/such/folder.txt: No such file or directory\n")


def test_stdin(gradguard: Runner) -> None:
    done = gradguard("check", "-", "--format", "json", "--stdin-filename", "src/a.py", stdin=RAISES.encode())
    assert (done.code, done.found) == (1, [("src/a.py", "GG101", LINE)])
    unnamed = gradguard("check", "-", stdin=RAISES.encode())
    assert unnamed.out.startswith(f"<stdin>:{LINE}:1: error")
    assert f"  {LINE} | y.add_(1)" in unnamed.out


def test_exit_zero(gradguard: Runner) -> None:
    gradguard.write(train=RAISES)
    done = gradguard("check", "--exit-zero")
    assert done.code == 0
    assert "GG101" in done.out


def test_selected_and_ignored(gradguard: Runner) -> None:
    gradguard.write(train=RAISES)
    assert gradguard("check", "--ignore", "GG101").code == 0
    assert gradguard("check", "--select", "GG3,accumulate-with-graph").code == 0
    assert gradguard("check", "--select", "GG3", "--select", "GG101").code == 1


def test_settings_of_the_nearest_pyproject_are_in_force(gradguard: Runner) -> None:
    inner = gradguard.folder / "inner"
    inner.mkdir()
    for folder in (gradguard.folder, inner):
        (folder / "train.py").write_text(RAISES)
    (gradguard.folder / "pyproject.toml").write_text('[tool.gradguard.rules]\nGG101 = "warning"\n')
    (inner / "pyproject.toml").write_text('[tool.gradguard.rules]\ninplace-on-saved-tensor = "hint"\n')
    found = gradguard("check", "--format", "json").json["findings"]
    assert [(each["file"], each["severity"]) for each in found] == [
        ("inner/train.py", "hint"),
        ("train.py", "warning"),
    ]
    assert gradguard("check", "inner").code == 0


def test_per_file_ignores_and_exclude(gradguard: Runner) -> None:
    (gradguard.folder / "tests").mkdir()
    (gradguard.folder / "tests" / "a.py").write_text(RAISES)
    gradguard.write(skip_me=RAISES, train=RAISES)
    (gradguard.folder / "pyproject.toml").write_text(
        '[tool.gradguard]\nexclude = ["skip_*.py"]\n[tool.gradguard.per-file-ignores]\n"tests/**" = ["GG1"]\n'
    )
    assert gradguard("check", "--format", "json").found == [("train.py", "GG101", LINE)]
    assert len(gradguard("check", "--format", "json", "skip_me.py").found) == 1
    assert gradguard("check", "--format", "json", "--force-exclude", "skip_me.py").found == []


def test_ignore_comments(gradguard: Runner) -> None:
    gradguard.write(
        train=RAISES.replace("y.add_(1)", "y.add_(1)  # gradguard: ignore[inplace-on-saved-tensor] known"),
        idle=CLEAN.replace("y = y + 1", "y = y + 1  # gradguard: ignore[GG101]"),
    )
    assert gradguard("check", "--format", "json").found == [("idle.py", "GG901", LINE)]


# What cannot be done


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nowhere.py",), "gradguard: error: nowhere.py: no such file or folder\n"),
        (("--select", "GG999"), 'gradguard: error: --select: unknown rule "GG999"'),
        (("--ignore", "item-in-lop"), 'gradguard: error: --ignore: unknown rule "item-in-lop"; did you mean "item-in-loop"?\n'),
        (("--torch", "new"), 'gradguard: error: --torch: "new" is no torch version'),
        (("--format", "xml"), "gradguard: error: argument --format: invalid choice: 'xml'"),
        (("--jobs", "0"), "gradguard: error: argument -j/--jobs: 0 is not between 1 and 256"),
        (("--jobs", "many"), 'gradguard: error: argument -j/--jobs: "many" is no number'),
        (("--baseline", "none.json"), "gradguard: error: none.json: no such baseline; write it with --write-baseline none.json\n"),
        (("--unsafe-fixes",), "gradguard: error: --unsafe-fixes says which fixes to apply; it needs --fix or --diff\n"),
        (("--fix", "--diff"), "gradguard: error: --diff shows what --fix would do; give one of the two\n"),
        (("-", "a.py"), 'gradguard: error: "-" reads stdin and cannot be mixed with other paths\n'),
        (("--stdin-filename", "a.py"), 'gradguard: error: --stdin-filename names the text of stdin; it needs "-" as the path\n'),
        (("--nonsense",), "gradguard: error: unrecognized arguments: --nonsense"),
        (("--changed-since", "main"), "gradguard: error: --changed-since: fatal: not a git repository"),
    ],
)  # fmt: skip
def test_a_wrong_request_is_refused_in_one_line(
    gradguard: Runner, words: tuple[str, ...], message: str
) -> None:
    gradguard.write(train=RAISES)
    done = gradguard("check", *words)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith(message)
    assert "Traceback" not in done.err


def test_settings_that_are_wrong_are_named_with_file_line_and_key(gradguard: Runner) -> None:
    gradguard.write(train=RAISES)
    file = gradguard.folder / "pyproject.toml"
    file.write_text('[tool.gradguard]\nselct = ["GG1"]\n')
    done = gradguard("check")
    assert done.code == 2
    assert done.err == (
        f'gradguard: error: {file}:2: [tool.gradguard] selct: unknown key; did you mean "select"?\n'
    )
    file.write_text("[tool.gradguard]\nall = \n")
    assert gradguard("check").err.startswith(f"gradguard: error: {file}:2: not valid TOML: ")
    file.write_bytes(b"[tool.gradguard]\n# \xff\n")
    assert gradguard("check").err.startswith(f"gradguard: error: {file}: not UTF-8")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"import torch\ns = '\xff'\n", "bad.py: line 2: not UTF-8 (byte 0xff)"),
        (b"import torch\nx = (\n", "bad.py:2: cannot be parsed: '(' was never closed"),
        (b"(", ""),
        (b"# torch\n(", "bad.py:2: cannot be parsed: '(' was never closed"),
        (b"# coding: nonsense\nimport torch\n", "bad.py: unknown encoding: nonsense"),
        (b"import torch\nx = '\x00'\n", "bad.py:"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_the_others_are_checked(
    gradguard: Runner, data: bytes, message: str
) -> None:
    gradguard.write(train=RAISES)
    (gradguard.folder / "bad.py").write_bytes(data)
    done = gradguard("check", "--format", "json", "bad.py", "train.py")
    assert done.found == [("train.py", "GG101", LINE)]
    assert "Traceback" not in done.err
    if message:
        assert done.code == 2
        assert done.err.startswith(f"gradguard: error: {message}")
        assert done.json["errors"][0]["file"] == "bad.py"
    else:
        assert (done.code, done.err) == (1, "")


def test_the_rest_of_a_file_with_a_broken_piece_is_checked(gradguard: Runner) -> None:
    gradguard.write(train=RAISES + "\n\ndef f(:\n    pass\n")
    done = gradguard("check", "--format", "json")
    assert done.code == 2
    assert ("train.py", "GG101", LINE) in done.found


def test_50_000_lines(gradguard: Runner) -> None:
    body = "".join(f"    y{number} = x * {number} + 1\n" for number in range(17))
    block = f"def f{{0}}(x):\n{body}    return y16.exp().sum()\n\n"
    gradguard.write(long="import torch\n" + "".join(block.format(number) for number in range(2_500)) + RAISES)
    done = gradguard("check", "--format", "json", "long.py")
    assert done.found == [("long.py", "GG101", 1 + 2_500 * 20 + LINE)]
    assert (done.code, done.err) == (1, "")


def test_thousands_of_findings(gradguard: Runner) -> None:
    """A finding must not cost a look through the whole file, nor its write one through all variables."""
    one = (
        "x{0} = torch.randn(3, requires_grad=True)\ny{0} = x{0}.exp()\ny{0}.add_(1)\ny{0}.sum().backward()\n"
    )
    gradguard.write(long="import torch\n" + "".join(one.format(number) for number in range(2_500)))
    done = gradguard("check", "long.py")
    assert (done.code, done.out.count("GG101")) == (1, 2_500)


def test_other_encodings(gradguard: Runner) -> None:
    text = "# -*- coding: latin-1 -*-\n# äöü\n" + RAISES
    (gradguard.folder / "a.py").write_bytes(text.encode("latin-1"))
    (gradguard.folder / "b.py").write_bytes(b"\xef\xbb\xbf" + RAISES.replace("\n", "\r\n").encode())
    assert gradguard("check", "--format", "json").found == [
        ("a.py", "GG101", LINE + 2),
        ("b.py", "GG101", LINE),
    ]


# How it runs


def test_it_never_loads_torch_or_what_it_does_not_need(gradguard: Runner) -> None:
    gradguard.write(train=RAISES, other=NO_TORCH)
    script = (
        "import sys\n"
        "from gradguard.main import main\n"
        "code = main(['check', '--jobs', '1', '--no-cache', *sys.argv[1:]])\n"
        "heavy = ['torch', 'pygls', 'lsprotocol', 'libcst', 'rich', 'numpy', 'yaml', 'multiprocessing']\n"
        "print(code, [name for name in heavy if name in sys.modules], file=sys.stderr)\n"
    )

    def loaded(*words: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", script, *words],
            cwd=gradguard.folder,
            env=gradguard.environment(),
            capture_output=True,
            text=True,
            check=True,
        ).stderr

    assert loaded("train.py") == "1 []\n"
    assert loaded("--format", "github", "train.py") == "1 []\n"
    assert loaded("other.py") == "0 []\n"


def test_workers_find_the_same_in_the_same_order(gradguard: Runner) -> None:
    gradguard.write(**{f"m{number:02}": RAISES if number % 3 else CLEAN for number in range(24)})
    one = gradguard("check", "--no-cache", "--jobs", "1", "--format", "json")
    two = gradguard("check", "--no-cache", "--jobs", "2", "--format", "json")
    assert one.out == two.out
    assert len(one.found) == 16


def test_the_cache_answers_the_same_and_notices_every_change(gradguard: Runner, cache_folder: Path) -> None:
    gradguard.write(train=RAISES, good=CLEAN)
    first = gradguard("check", "--format", "json")
    entries = list(cache_folder.rglob("*.json"))
    assert len(entries) == 2
    assert gradguard("check", "--format", "json") == first
    gradguard.write(good="\n" + RAISES)
    assert gradguard("check", "--format", "json").found == [
        ("good.py", "GG101", LINE + 1),
        ("train.py", "GG101", LINE),
    ]
    assert gradguard("check", "--format", "json", "--ignore", "GG101").found == []


def test_the_cache_is_what_answers(gradguard: Runner, cache_folder: Path) -> None:
    gradguard.write(train=RAISES)
    gradguard("check")
    (entry,) = cache_folder.rglob("*.json")
    entry.write_text(entry.read_text().replace("GG101", "GG102"))
    assert "GG102" in gradguard("check").out
    assert "GG101" in gradguard("check", "--no-cache").out


def test_projects_have_caches_of_their_own(gradguard: Runner, cache_folder: Path) -> None:
    gradguard.write(train=RAISES)
    (gradguard.folder / "pyproject.toml").touch()
    first = gradguard("check", "--format", "json")
    other = Runner(gradguard.folder.rename(gradguard.folder.parent / "moved"))
    assert other("check", "--format", "json") == first
    assert sorted(each.name.rpartition("-")[0] for each in cache_folder.iterdir()) == ["moved", "project"]
    inner = Runner(other.folder / "inner")
    inner.folder.mkdir()
    inner("check", "..")
    assert len(list(cache_folder.iterdir())) == 2


def test_the_cache_lies_in_no_project(gradguard: Runner, cache_folder: Path) -> None:
    gradguard.write(train=RAISES)
    gradguard("check")
    assert [path.name for path in gradguard.folder.iterdir()] == ["train.py"]
    assert len(list(cache_folder.rglob("*.json"))) == 1


def test_the_usual_place_of_the_cache_is_that_of_the_system(gradguard: Runner, tmp_path: Path) -> None:
    gradguard.write(train=RAISES)
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "xdg"), "LOCALAPPDATA": str(tmp_path)}
    gradguard("check", GRADGUARD_CACHE_DIR="", **home)
    (entry,) = tmp_path.rglob("*.json")
    assert entry.relative_to(tmp_path).parts[0] != "project"
    assert "gradguard" in entry.parts


def test_the_option_names_the_cache_before_the_variable(
    gradguard: Runner, cache_folder: Path, tmp_path: Path
) -> None:
    gradguard.write(train=RAISES)
    gradguard("check", "--cache-dir", "../named/deep")
    assert len(list((tmp_path / "named" / "deep").rglob("*.json"))) == 1
    assert not cache_folder.exists()
    assert gradguard("check", "--cache-dir", "train.py").err.startswith("gradguard: warning: no cache: ")


def test_a_place_that_others_may_write_to_gives_no_cache(gradguard: Runner, cache_folder: Path) -> None:
    gradguard.write(train=RAISES)
    cache_folder.mkdir()
    cache_folder.chmod(0o777)
    done = gradguard("check")
    assert done.code == 1
    assert f"gradguard: warning: no cache: {cache_folder}: others may write there" in done.err
    assert list(cache_folder.iterdir()) == []


def test_runs_at_the_same_time_share_a_cache(gradguard: Runner, cache_folder: Path) -> None:
    gradguard.write(**{f"m{number:02}": RAISES for number in range(12)})
    command = [sys.executable, "-m", "gradguard", "check", "--format", "json"]
    runs = [
        subprocess.Popen(command, cwd=gradguard.folder, env=gradguard.environment(), stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    outs = {run.communicate()[0] for run in runs}
    assert len(outs) == 1
    assert len(json.loads(outs.pop())["findings"]) == 12
    assert len(list(cache_folder.rglob("*.json"))) == 12
    assert not list(cache_folder.rglob("*.tmp"))


def test_no_cache_leaves_nothing_behind(gradguard: Runner, cache_folder: Path) -> None:
    gradguard.write(train=RAISES)
    gradguard("check", "--no-cache")
    assert not cache_folder.exists()
    assert [path.name for path in gradguard.folder.iterdir()] == ["train.py"]


def test_a_hint_is_given_once(gradguard: Runner) -> None:
    gradguard.write(train=RAISES)
    first = gradguard("check")
    assert "gradguard explain GG101" in first.err
    assert "# gradguard: ignore[inplace-on-saved-tensor] reason" in first.err
    assert gradguard("check").err == ""


def test_statistics(gradguard: Runner) -> None:
    gradguard.write(a=RAISES, b=RAISES)
    assert "2 error       GG101 inplace-on-saved-tensor\n" in gradguard("check", "--statistics").out


def test_a_baseline_hides_what_is_old_wherever_it_moves(gradguard: Runner) -> None:
    gradguard.write(train=RAISES)
    wrote = gradguard("check", "--write-baseline", "known.json")
    assert (wrote.code, wrote.out) == (0, "")
    assert gradguard("check", "--baseline", "known.json").code == 0
    gradguard.write(train="# moved down\n\n" + RAISES)
    assert "1 in the baseline" in gradguard("check", "--baseline", "known.json").out
    gradguard.write(train=RAISES + RAISES)
    assert gradguard("check", "--baseline", "known.json", "--format", "json").found == [
        ("train.py", "GG101", LINE + 6)
    ]
    inner = Runner(gradguard.folder / "inner")
    inner.folder.mkdir()
    gradguard.write(train=RAISES)
    assert inner("check", "..", "--baseline", "../known.json").code == 0
    (gradguard.folder / "known.json").write_text("[]")
    assert (
        gradguard("check", "--baseline", "known.json").err
        == "gradguard: error: known.json: not a gradguard baseline\n"
    )


def test_only_what_changed_since_a_commit(gradguard: Runner) -> None:
    def git(*words: str) -> None:
        identity = ["-c", "user.name=n", "-c", "user.email=e@e"]
        subprocess.run(["git", *identity, *words], cwd=gradguard.folder, check=True, capture_output=True)

    gradguard.write(old=RAISES)
    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-qm", "first")
    gradguard.write(new=RAISES)
    assert gradguard("check", "--changed-since", "main", "--format", "json").found == [
        ("new.py", "GG101", LINE)
    ]
    git("add", ".")
    git("commit", "-qm", "second")
    done = gradguard("check", "--changed-since", "main")
    assert (done.code, done.err) == (0, "gradguard: note: no Python files changed since main\n")
    assert gradguard("check", "--changed-since", "nope").err == (
        'gradguard: error: --changed-since: git knows no commit "nope"\n'
    )


def test_colours_are_for_terminals_and_those_who_ask(gradguard: Runner) -> None:
    gradguard.write(train=RAISES)
    assert "\x1b[" not in gradguard("check").out
    coloured = gradguard("check", "--color", "always").out
    assert "\x1b[" in coloured
    assert "\x1b[" in gradguard("check", FORCE_COLOR="1").out
    assert "\x1b[" not in gradguard("check", FORCE_COLOR="1", NO_COLOR="1").out


def test_a_reader_that_goes_away_is_no_error(gradguard: Runner) -> None:
    gradguard.write(**{f"m{number}": RAISES * 200 for number in range(4)})
    command = f"{sys.executable} -m gradguard check --no-cache | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=gradguard.folder,
        env=gradguard.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr == ""


def test_an_interrupt_ends_it_quietly(gradguard: Runner) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "gradguard", "check", "-"],
        cwd=gradguard.folder,
        env=gradguard.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert err.decode() == "gradguard: interrupted\n"


def test_a_device_is_not_read_as_a_file(gradguard: Runner) -> None:
    (gradguard.folder / "endless.py").symlink_to("/dev/zero")
    found = gradguard("check")
    assert (found.code, found.err) == (0, "gradguard: warning: not read: endless.py: a device, not a file\n")
    named = gradguard("check", "endless.py")
    assert (named.code, named.err) == (2, "gradguard: error: endless.py: a device, not a file\n")


def test_a_file_that_may_not_be_read_is_named(gradguard: Runner, tmp_path: Path) -> None:
    gradguard.write(train=RAISES)
    (gradguard.folder / "train.py").chmod(0)
    done = gradguard("check", "train.py")
    # Root may read everything; there the file is simply checked.
    assert (done.code, "Permission denied" in done.err) in ((2, True), (1, False))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names of files are always Unicode")
def test_a_file_whose_name_is_no_utf_8(gradguard: Runner) -> None:
    name = b"caf\xe9.py"
    Path(os.fsdecode(os.path.join(os.fsencode(gradguard.folder), name))).write_text(RAISES, "utf-8")
    for _ in range(2):  # the second time from the cache
        for form in ("json", "sarif", "gitlab"):
            done = gradguard("check", "--format", form, "--output", "report")
            assert (done.code, done.err) == (1, "")
            json.loads((gradguard.folder / "report").read_text("utf-8"))
        sarif = json.loads(gradguard("check", "--format", "sarif").out)
        jsonschema.validate(sarif, json.loads(SCHEMA.read_text("utf-8")))
        assert '"caf%E9.py"' in json.dumps(sarif)
        gradguard("check", "--output", "report")
        assert (gradguard.folder / "report").read_bytes().startswith(name + b":5:1: error")


def test_a_release_that_is_not_described_is_said_to_be_another(gradguard: Runner) -> None:
    gradguard.write(train=RAISES)
    done = gradguard("check", "train.py", "--torch", "9.1")
    assert done.code == 1
    assert "gradguard: warning: torch 9.1 is not in the op table; using 2.14" in done.err
    assert "torch 2.13 is assumed" in gradguard("check", "train.py", "--torch", "2.13", "--verbose").err
    assert "is assumed" not in gradguard("check", "train.py").err


def test_the_release_that_is_installed_is_assumed_and_said_once(gradguard: Runner) -> None:
    gradguard.write(train=RAISES)
    (gradguard.folder / "site" / "torch-2.14.1+cu130.dist-info").mkdir(parents=True)
    path = os.pathsep.join([str(SERVER), str(gradguard.folder / "site")])
    first = gradguard("check", "train.py", PYTHONPATH=path)
    said = "torch 2.14.1+cu130 is installed, and assumed where torch-version or --torch name no other"
    assert (first.code, said in first.err) == (1, True)
    again = gradguard("check", "train.py", "--verbose", PYTHONPATH=path).err
    assert said not in again
    assert "torch 2.14 is assumed, as 2.14.1+cu130 is installed" in again
    assert gradguard("check", "train.py", "--format", "json", PYTHONPATH=path).json["torch"] == "2.14"
    assert "2.13 is assumed" in gradguard("check", "--torch", "2.13", "-v", PYTHONPATH=path).err
    (gradguard.folder / "pyproject.toml").write_text('[tool.gradguard]\ntorch-version = "2.13"\n')
    assert "2.13 is assumed" in gradguard("check", "-v", PYTHONPATH=path).err
    (gradguard.folder / "pyproject.toml").write_text('[tool.gradguard]\ntorch-version = "auto"\n')
    assert "2.14 is assumed" in gradguard("check", "-v", PYTHONPATH=path).err


def test_the_operations_are_those_of_the_release_that_is_installed(gradguard: Runner) -> None:
    (gradguard.folder / "torch-2.14.0.dist-info").mkdir()
    path = os.pathsep.join([str(SERVER), str(gradguard.folder)])
    new, old = (
        gradguard("ops", "linalg.polar", *more, PYTHONPATH=path) for more in ((), ("--torch", "2.13"))
    )
    assert "torch.linalg.polar" in new.out
    assert "as in torch 2.14, which is installed" in new.err
    assert old.code == 1
    assert gradguard("explain", "torch.linalg.polar", PYTHONPATH=path).code == 0
    assert gradguard("explain", "torch.linalg.polar", "--torch", "2.13", PYTHONPATH=path).code == 2
