"""What the words of the command line and the lines of lists mean."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradguard.cli.refused import Refused
from gradguard.fleet.model import Kind, Source
from gradguard.fleet.sources import sources
from tests.fleet.making import bare, folder, repository, sdist, wheel


def names(*words: str | Path) -> list[tuple[Kind, str, str]]:
    return [(each.kind, each.name, each.revision) for each in sources([str(word) for word in words])]


def test_each_kind_is_told_by_what_it_is(tmp_path: Path) -> None:
    assert names(
        folder(tmp_path / "plain"),
        repository(tmp_path / "work"),
        bare(tmp_path / "server.git"),
        wheel(tmp_path / "Some.Pkg-1.2.0-py3-none-any.whl"),
        sdist(tmp_path / "some_pkg-1.3.tar.gz"),
        "https://example.org/team/repo.git",
        "git@example.org:team/other.git",
    ) == [
        (Kind.FOLDER, "plain", ""),
        (Kind.FOLDER, "work", ""),
        (Kind.GIT, "server", ""),
        (Kind.ARCHIVE, "some-pkg", "1.2.0"),
        (Kind.ARCHIVE, "some-pkg", "1.3"),
        (Kind.GIT, "team/repo", ""),
        (Kind.GIT, "team/other", ""),
    ]


def test_a_list_names_places_from_where_it_lies_with_revisions_and_remarks(tmp_path: Path) -> None:
    repository(tmp_path / "in" / "with blank")
    folder(tmp_path / "in" / "plain")
    listed = tmp_path / "in" / "list.txt"
    listed.write_text(
        '# all\n\n"with blank" v1   # a tag\nplain\nplain # twice\nhttps://example.org/a/b#c 0123abc\n'
    )
    assert sources([str(listed)]) == [
        Source(Kind.GIT, str(tmp_path / "in" / "with blank"), "with blank", "v1"),
        Source(Kind.FOLDER, str(tmp_path / "in" / "plain"), "plain", ""),
        Source(Kind.GIT, "https://example.org/a/b#c", "a/b#c", "0123abc"),
    ]


def test_what_has_one_name_is_told_apart_by_where_it_lies(tmp_path: Path) -> None:
    found = names(
        folder(tmp_path / "a" / "utils"), folder(tmp_path / "b" / "utils"), folder(tmp_path / "c" / "x")
    )
    assert [name for _, name, _ in found] == ["a/utils", "b/utils", "x"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nowhere", "list.txt:2: nowhere: no such file or folder"),
        ("plain v1", "list.txt:2: plain: no git repository, so it has no revision v1; leave that out"),
        ("work --upload-pack=x", 'list.txt:2: "--upload-pack=x" is no revision'),
        ("ext::sh", "list.txt:2: ext::sh: no such file or folder"),
        ("ext://sh", "list.txt:2: ext://sh: no address that repositories are fetched from"),
        ("train.py", "list.txt:2: train.py: neither a folder nor an archive"),
    ],
)
def test_a_line_that_is_none_is_told_with_its_number(tmp_path: Path, line: str, said: str) -> None:
    folder(tmp_path / "plain")
    repository(tmp_path / "work")
    (tmp_path / "train.py").touch()
    (tmp_path / "list.txt").write_text(f"plain\n{line}\n")
    with pytest.raises(Refused) as refused:
        sources([str(tmp_path / "list.txt")])
    assert len(refused.value.reasons) == 1
    assert refused.value.reasons[0].startswith(f"{tmp_path}/{said}")
