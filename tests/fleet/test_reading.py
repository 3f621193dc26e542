"""Every kind of source gives the same packages, and findings are those of `gradguard check`."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradguard.fleet.model import Options
from gradguard.fleet.results import Result
from gradguard.fleet.store import RESULTS, Store, place
from tests.cli.running import RAISES, Runner
from tests.fleet.making import (
    PROJECT,
    Files,
    bare,
    counts,
    folder,
    git,
    repository,
    scanned,
    sdist,
    unread,
    wheel,
)

BOTH = {"error GG101": 2}


def result(store: Path, key: str) -> Result:
    data = Store(str(store)).get(place(RESULTS, key))
    assert data is not None
    return Result.of(data)


def test_all_kinds_of_sources_hold_the_same_package(tmp_path: Path) -> None:
    origin = bare(tmp_path / "server.git")
    came = scanned(
        tmp_path / "store",
        folder(tmp_path / "plain"),
        wheel(tmp_path / "a-1.0-py3-none-any.whl"),
        sdist(tmp_path / "b-2.0.tar.gz"),
        origin,
        f"file://{origin}",
    )
    found = list(came.heads.values())
    assert [head["state"] for head in found] == ["checked"] * 5
    assert [head["counts"] for head in found] == [BOTH] * 5
    assert len({head["key"] for head in found}) == 1, "what has the same content has one result"
    assert [head["kept"] for head in found] == [False, True, True, True, True]
    assert [head["package"] for head in found] == ["plain", "a", "b", "server", tmp_path.name + "/server"]
    assert found[3]["revision"] == git(origin, "rev-parse", "HEAD")
    assert unread(came) == []


def test_findings_are_those_of_a_check(tmp_path: Path) -> None:
    top = folder(tmp_path / "project")
    checked = Runner(top)("check", "--no-cache", "--format", "json", "--jobs", "1").json["findings"]
    came = scanned(tmp_path / "store", top)
    (head,) = came.heads.values()
    found = result(tmp_path / "store", head["key"])
    assert [each.plain() for each in found.findings] == [
        {key: value for key, value in each.items() if key != "fixes"} for each in checked
    ]


MONOREPO: Files = {
    "pyproject.toml": '[tool.gradguard]\nselect = ["GG1"]\n[tool.gradguard.per-file-ignores]\n"packages/muted/**" = ["GG101"]\n',
    "packages/own/pyproject.toml": '[tool.gradguard]\nselect = ["GG2"]\nexclude = ["old"]\n',
    "packages/own/train.py": RAISES,
    "packages/own/old/train.py": RAISES,
    "packages/plain/setup.py": "",
    "packages/plain/train.py": RAISES,
    "packages/muted/setup.cfg": "",
    "packages/muted/train.py": RAISES,
    "tools/train.py": RAISES,
    "venv/lib/train.py": RAISES,
}


def test_each_root_is_a_package_with_its_own_settings(tmp_path: Path) -> None:
    came = scanned(tmp_path / "store", bare(tmp_path / "mono.git", MONOREPO))
    assert counts(came) == {
        "mono": {"error GG101": 1},
        "mono/packages/own": {},
        "mono/packages/plain": {"error GG101": 1},
        "mono/packages/muted": {},
    }
    files = {head["package"]: head["files"] for head in came.heads.values()}
    assert files == {"mono": 1, "mono/packages/own": 1, "mono/packages/plain": 2, "mono/packages/muted": 1}


def test_the_command_line_goes_over_the_settings_of_a_package(tmp_path: Path) -> None:
    source = folder(tmp_path / "mono", MONOREPO)
    came = scanned(tmp_path / "store", source, options=Options(select=("GG101",)))
    assert counts(came)["mono/packages/own"] == {"error GG101": 1}


def test_wrong_settings_are_told_and_the_right_ones_count(tmp_path: Path) -> None:
    text = '[tool.gradguard]\nselect = ["GG2"]\ntorch-version = "new"\n'
    came = scanned(tmp_path / "store", folder(tmp_path / "p", {**PROJECT, "pyproject.toml": text}))
    assert counts(came) == {"p": {}}
    ((path, why),) = unread(came)
    assert path == "pyproject.toml"
    assert "torch-version" in why
    assert ":3:" in why


def test_a_folder_without_settings_above_it_has_none_from_there(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.gradguard]\nselect = ["GG2"]\nexclude = ["*"]\n')
    came = scanned(tmp_path / "store", folder(tmp_path / "p", {"train.py": RAISES}))
    assert counts(came) == {"p": {"error GG101": 1}}


def test_what_changed_is_read_again_and_nothing_else(tmp_path: Path) -> None:
    store = tmp_path / "store"
    first, second = folder(tmp_path / "first"), folder(tmp_path / "second", {"train.py": RAISES})
    scanned(store, first, second)
    (second / "train.py").write_text(RAISES + "\n")
    came = scanned(store, first, second)
    assert [head["kept"] for head in came.heads.values()] == [True, False]
    came = scanned(store, first, second, options=Options(ignore=("GG101",)))
    assert [head["kept"] for head in came.heads.values()] == [False, False]
    assert counts(came) == {"first": {}, "second": {}}


def test_a_damaged_result_is_told_and_made_anew(tmp_path: Path) -> None:
    store, source = tmp_path / "store", folder(tmp_path / "p")
    scanned(store, source)
    (kept,) = store.glob("results/*/*")
    kept.write_bytes(kept.read_bytes()[:-9])
    came = scanned(store, source)
    assert unread(came) == [("", "its kept result was damaged, and is removed; scan it again")]
    assert counts(scanned(store, source)) == {"p": BOTH}


def test_a_commit_whose_packages_are_all_known_is_not_even_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = bare(tmp_path / "server.git")
    before = scanned(tmp_path / "store", f"file://{origin}")
    for path in (origin / "objects").iterdir():
        if len(path.name) == 2:
            for each in path.iterdir():
                each.unlink()  # the commit is still named, and nothing of it is there
    after = scanned(tmp_path / "store", f"file://{origin}")
    assert counts(after) == counts(before) == {f"{tmp_path.name}/server": BOTH}
    assert [head["kept"] for head in after.heads.values()] == [True]


def test_revisions_are_read_from_the_commits(tmp_path: Path) -> None:
    top = repository(tmp_path / "work")
    git(top, "tag", "--annotate", "--message=one", "v1")
    first = git(top, "rev-parse", "HEAD")
    (top / "train.py").write_text("import torch\n")
    git(top, "commit", "--quiet", "--all", "--message=second")
    (top / "use.py").unlink()
    listed = tmp_path / "list.txt"
    listed.write_text(
        f"work v1\nwork HEAD\nwork\nfile://{top} v1\nfile://{top} main\nfile://{top} {first}\nwork v9\n"
    )
    came = scanned(tmp_path / "store", listed)
    found = [(head["state"], head.get("counts", {}).get("error GG101", 0)) for head in came.heads.values()]
    assert found == [
        ("checked", 2),
        ("checked", 1),
        ("checked", 0),
        ("checked", 2),
        ("checked", 1),
        ("checked", 2),
        ("unopened", 0),
    ]
    assert unread(came) == [("", 'git: git knows no commit "v9"')]


def test_context_is_kept_on_request(tmp_path: Path) -> None:
    source = folder(tmp_path / "p", {"train.py": RAISES})
    for context, lines in ((0, ("y.add_(1)",)), (1, ("y = x.exp()", "y.add_(1)", "y.sum().backward()"))):
        came = scanned(tmp_path / "store", source, options=Options(context=context))
        (head,) = came.heads.values()
        found = result(tmp_path / "store", head["key"])
        assert found.lines == (lines,)
        assert found.at == (context,)


def test_marks_stay_where_lines_come_and_releases_change(tmp_path: Path) -> None:
    for version, text in (("1.0", RAISES), ("1.1", "# more\n\n" + RAISES)):
        sdist(tmp_path / f"p-{version}.tar.gz", {"p.py": text})
    came = scanned(tmp_path / "store", tmp_path / "p-1.0.tar.gz", tmp_path / "p-1.1.tar.gz")
    first, second = (
        result(tmp_path / "store", head["key"]).marks(head["package"]) for head in came.heads.values()
    )
    assert first == second
    assert len(first) == 1
