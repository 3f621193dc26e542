"""The command as a user runs it, on the real Ray."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from tests.cli.running import RAISES, SERVER, Runner
from tests.docs.pages import ROOT
from tests.fleet.making import PROJECT, folder, sdist


def query(output: Path, text: str) -> list[tuple[object, ...]]:
    return duckdb.sql(text.replace("$", str(output))).fetchall()


@pytest.fixture(scope="module")
def scans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two scans: of `first` and `second`, and of `first` once it has changed, `third`, and something that is no archive."""
    top = tmp_path_factory.mktemp("scans")
    first, second = folder(top / "first"), sdist(top / "second-1.0.tar.gz", {"s.py": RAISES})
    run = Runner(top)
    done = run("fleet", str(first), str(second), "--output", "one", "--jobs", "2", "--context", "1")
    assert (done.code, "2 packages" in done.out) == (0, True), done.err
    (first / "train.py").write_text("import torch\n\n" + RAISES.replace("exp", "sigmoid"))
    third = folder(top / "third", {"t.py": RAISES})
    (top / "broken-1.whl").write_bytes(b"no archive")
    words = ("--sarif", "--against", "one", "--results", "one")
    done = run("fleet", str(first), str(third), "broken-1.whl", "--output", "two", "--jobs", "2", *words)
    assert done.code == 0, done.err
    (top / "said").write_text(done.err)
    return top


def test_tables_are_read_by_their_columns(scans: Path) -> None:
    found = query(
        scans / "one",
        "select package, revision, path, line, code, severity, certainty, fixable, text, context from "
        "'$/findings/**/*.parquet' order by package, path",
    )
    assert found == [
        ("first", "", "train.py", 5, "GG101", "error", "certain", "safe", "y.add_(1)", ["y = x.exp()", "y.add_(1)", "y.sum().backward()"]),
        ("first", "", "use.py", 7, "GG101", "error", "certain", "safe", "y += 1", ["y = act(x)", "y += 1", "y.sum().backward()"]),
        ("second", "1.0", "second-1.0/s.py", 5, "GG101", "error", "certain", "safe", "y.add_(1)", ["y = x.exp()", "y.add_(1)", "y.sum().backward()"]),
    ]  # fmt: skip
    related = query(scans / "one", "select related from '$/findings/**/*.parquet' where path = 'use.py'")
    assert related[0][0][0]["path"] == "pkg/act.py"
    files = query(
        scans / "one", "select package, state, files, errors, lines from '$/packages/*.parquet' order by 1"
    )
    lines = sum(str(text).count("\n") for name, text in PROJECT.items() if name.endswith(".py"))
    assert files == [("first", "checked", 4, 2, lines), ("second", "checked", 1, 1, 6)]
    assert query(scans / "one", "select * from '$/unread/*.parquet'") == []


def test_pandas_reads_the_partitions(scans: Path) -> None:
    import pandas

    assert set(pandas.read_parquet(scans / "one" / "findings")["code"]) == {"GG101"}


def test_what_is_not_read_is_told_and_counted(scans: Path) -> None:
    assert "not read: " in (scans / "said").read_text()
    ((source, why),) = query(scans / "two", "select source, why from '$/unread/*.parquet'")
    assert str(source).endswith("broken-1.whl")
    assert str(why).startswith("no archive that can be read")
    assert json.loads((scans / "two" / "scan.json").read_text())["unread"] == 1


def test_the_summary_has_the_trend(scans: Path) -> None:
    said = (scans / "two" / "summary.txt").read_text()
    assert (
        "against one: 0 new, 0 gone, 2 kept; 1 in packages that it had not read, 1 of it in packages" in said
    )
    page = (scans / "two" / "summary.html").read_text()
    assert "<h2>Trend</h2>" in page
    assert "http" not in page.replace(
        "https://github.com/gradguard/gradguard/blob/main/server/gradguard/rules/", ""
    )


def test_a_package_has_its_sarif(scans: Path) -> None:
    logs = sorted((scans / "two" / "sarif").iterdir())
    assert [path.name.rpartition("-")[0] for path in logs] == ["first", "third"]
    results = json.loads(logs[0].read_text())["runs"][0]["results"]
    assert [each["ruleId"] for each in results] == ["GG101", "GG101"]
    marks = {row[0] for row in query(scans / "two", "select fingerprint from '$/findings/**/*.parquet'")}
    assert len(marks) == 3
    assert not (scans / "one" / "sarif").exists()


def test_diff_compares_two_scans(scans: Path) -> None:
    run = Runner(scans)
    done = run("fleet", "diff", "one", "two")
    assert done.code == 1
    assert done.out.startswith("against one: 0 new, 0 gone, 2 kept; 1 in packages")
    assert run("fleet", "diff", "one", "one").code == 0
    done = run("fleet", "diff", "one", "nowhere")
    assert (done.code, done.err) == (
        2,
        f"gradguard: error: {scans}/nowhere: no scan; name the folder that was given to --output\n",
    )


def test_the_notebook_answers_its_questions(scans: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCAN", str(scans / "two"))
    monkeypatch.setenv("EARLIER", str(scans / "one"))
    notebook = json.loads((ROOT / "docs" / "notebooks" / "fleet.ipynb").read_text("utf-8"))
    names: dict[str, object] = {}
    answers = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code" and source.startswith("duckdb"):
            answers.append(eval(source, names).fetchall())
        elif cell["cell_type"] == "code":
            exec(source, names)
    rules, packages, fixable, silent, new = answers
    assert rules == [("GG101", "inplace-on-saved-tensor", 3, 2, 3, 0)]
    assert [row[0] for row in packages] == ["first", "third"]
    assert fixable == [("safe", "error", 3, 2)]
    assert [row[0] for row in silent] == ["not read"]
    assert [row[:4] for row in new] == [("third", "t.py", 5, "GG101")]


def test_an_output_of_anybody_else_is_left_alone(tmp_path: Path) -> None:
    kept = folder(tmp_path / "out" / "findings", {"mine.txt": "mine"})
    done = Runner(folder(tmp_path / "p"))("fleet", ".", "--output", str(tmp_path / "out"))
    assert done.code == 2
    assert "it holds something else than a scan; name a new or empty folder" in done.err
    assert (kept / "mine.txt").read_text() == "mine"


def test_an_interrupted_scan_goes_on_where_it_was(tmp_path: Path) -> None:
    """Each package is new to the first run; the second finds what that had done."""
    tops = [folder(tmp_path / f"p{number}", {"train.py": RAISES + "#" * number}) for number in range(150)]
    words = [sys.executable, "-m", "gradguard", "fleet", *map(str, tops), "--output", "out", "--jobs", "2"]
    environment = {**os.environ, "PYTHONPATH": str(SERVER)}
    with subprocess.Popen(words, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not list((tmp_path / "out").glob("results/*/*")):
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        said = process.stderr.read()
    assert process.returncode == 130, said
    assert "the same command goes on from there" in said
    done = len([path for path in (tmp_path / "out").glob("results/*/*") if path.suffix != ".tmp"])
    assert done > 0
    again = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert again.stdout.startswith("150 sources, 150 packages, 150 files (150 with torch)")
    assert f"; {done} packages kept" in again.stdout


def test_nothing_is_imported_from_the_folder_it_is_started_in(tmp_path: Path) -> None:
    """Ray puts that folder before all others where its workers look for modules."""
    ran = tmp_path / "ran"
    text = f"open({str(ran)!r}, 'a').write(__file__)\nraise ImportError('a stranger')\n"
    stranger = folder(
        tmp_path / "stranger",
        dict.fromkeys(("msgpack.py", "pandas.py", "zlib.py", "libcst.py", "pathspec.py"), text),
    )
    top = folder(tmp_path / "p", {"train.py": RAISES})
    done = Runner(stranger)("fleet", str(top), "--output", str(tmp_path / "out"), "--jobs", "1")
    assert not ran.exists(), ran.read_text()
    assert (done.code, "1 finding (1 error)" in done.out) == (0, True), done.err
    assert sorted(path.name for path in stranger.iterdir()) == [
        "libcst.py",
        "msgpack.py",
        "pandas.py",
        "pathspec.py",
        "zlib.py",
    ]


def test_without_the_extra_the_command_says_what_to_install(tmp_path: Path) -> None:
    words = "import sys\nsys.modules['ray'] = None\nimport importlib.util as u\nfound = u.find_spec\n" \
        "u.find_spec = lambda name: None if name == 'ray' else found(name)\n" \
        "from gradguard.main import main\nsys.exit(main(['fleet', '.', '--output', 'out']))\n"  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(SERVER)}
    done = subprocess.run(
        [sys.executable, "-c", words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.endswith("install it with: pip install 'gradguard[fleet]'\n")
    assert done.stderr.count("\n") == 1


def test_no_other_command_loads_anything_of_it(tmp_path: Path) -> None:
    words = "import sys\nfrom gradguard.main import main\nmain(['check', '.'])\n" \
        "print([name for name in sys.modules if name.partition('.')[0] in ('ray', 'pyarrow', 'fsspec') or 'fleet' in name])\n"  # fmt: skip
    folder(tmp_path, {"train.py": RAISES})
    environment = {**os.environ, "PYTHONPATH": str(SERVER)}
    done = subprocess.run(
        [sys.executable, "-c", words],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.endswith("[]\n")
