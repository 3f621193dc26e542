"""Sources made to harm: nothing of them runs, nothing leads out of them, and each costs itself."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from pathlib import Path

import pytest

from gradguard.fleet import archives, names
from gradguard.fleet.model import Limits, Unopened
from tests.cli.running import RAISES
from tests.fleet.making import bare, counts, folder, git, repository, scanned, sdist, unread, wheel

ERROR = {"error GG101": 1}


def member(name: str, kind: bytes, to: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, to
    return made


def test_links_devices_and_names_that_lead_out_are_refused_in_archives(tmp_path: Path) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text(RAISES)
    extra = [
        member("p-1/soft.py", tarfile.SYMTYPE, str(outside)),
        member("p-1/hard.py", tarfile.LNKTYPE, "p-1/train.py"),
        member("p-1/device.py", tarfile.CHRTYPE),
        member("p-1/pipe.py", tarfile.FIFOTYPE),
        member("../up.py", tarfile.REGTYPE),
        member("/root.py", tarfile.REGTYPE),
    ]
    sdist(tmp_path / "p-1.tar.gz", {"train.py": RAISES}, extra)
    with zipfile.ZipFile(tmp_path / "q-1.zip", "w") as archive:
        link = zipfile.ZipInfo("soft.py")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, str(outside))
        archive.writestr("../../up.py", RAISES)
        archive.writestr("train.py", RAISES)
    came = scanned(tmp_path / "store", tmp_path / "p-1.tar.gz", tmp_path / "q-1.zip")
    assert counts(came) == {"p": ERROR, "q": ERROR}
    assert unread(came) == [
        ("p-1/soft.py", names.LINK),
        ("p-1/hard.py", names.LINK),
        ("p-1/device.py", "a device or a pipe, not a file"),
        ("p-1/pipe.py", "a device or a pipe, not a file"),
        ("../up.py", names.LEADS_OUT),
        ("/root.py", names.LEADS_OUT),
        ("soft.py", names.LINK),
        ("../../up.py", names.LEADS_OUT),
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "outside.py",
        "p-1.tar.gz",
        "q-1.zip",
        "store",
    ]


def test_links_and_pipes_are_refused_in_folders(tmp_path: Path) -> None:
    outside = folder(
        tmp_path / "outside", {"secret.py": RAISES, "pyproject.toml": "[tool.gradguard]\nselect = ['GG2']\n"}
    )
    top = folder(tmp_path / "p", {"train.py": RAISES})
    (top / "soft.py").symlink_to(outside / "secret.py")
    (top / "inner.py").symlink_to("train.py")
    (top / "gone.py").symlink_to("nowhere.py")
    (top / "elsewhere").symlink_to(outside)
    (top / "pyproject.toml").symlink_to(outside / "pyproject.toml")
    os.mkfifo(top / "pipe.py")
    came = scanned(tmp_path / "store", top)
    assert counts(came) == {"p": ERROR}
    assert sorted(unread(came)) == [
        ("gone.py", names.LINK),
        ("inner.py", names.LINK),
        ("pipe.py", "a named pipe, not a file"),
        ("pyproject.toml", names.LINK),
        ("soft.py", names.LINK),
    ]


def test_links_and_submodules_are_refused_in_commits(tmp_path: Path) -> None:
    inner = repository(tmp_path / "inner", {"inner.py": RAISES})
    top = repository(tmp_path / "work", {"train.py": RAISES})
    (top / "soft.py").symlink_to("/etc/passwd")
    git(top, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub.py")
    git(top, "add", "--all")
    git(top, "commit", "--quiet", "--message=more")
    git(tmp_path, "clone", "--quiet", "--bare", str(top), "bare.git")
    came = scanned(tmp_path / "store", tmp_path / "bare.git")
    assert counts(came) == {"bare": ERROR}
    assert unread(came) == [
        ("soft.py", names.LINK),
        ("sub.py", "a submodule, which is not fetched"),
    ]


def test_nothing_that_a_repository_names_is_run(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\necho run >> {ran}\ncat\n")
    program.chmod(0o755)
    files = {
        "train.py": RAISES,
        "setup.py": f"open({str(ran)!r}, 'a').write('setup')\n",
        "conftest.py": f"open({str(ran)!r}, 'a').write('conftest')\n",
        ".gitattributes": "*.py filter=evil diff=evil\n",
    }
    origin = bare(tmp_path / "server.git", files)
    work = repository(tmp_path / "work", files)
    for place, inner in ((origin, origin), (work, work / ".git")):
        for key in (
            "core.fsmonitor", "filter.evil.smudge", "filter.evil.clean", "filter.evil.process", "core.sshCommand",
            "diff.external", "uploadpack.packObjectsHook", "core.pager", "core.askPass", "credential.helper",
        ):  # fmt: skip
            git(place, "config", key, str(program))
        (inner / "hooks").mkdir(exist_ok=True)
        for hook in (
            "post-checkout",
            "pre-receive",
            "reference-transaction",
            "post-index-change",
            "fsmonitor-watchman",
        ):
            (inner / "hooks" / hook).symlink_to(program)
    ran.unlink(missing_ok=True)  # the test's own git may have run some of it
    listed = tmp_path / "list.txt"
    listed.write_text(f"server.git\nwork\nwork HEAD\nfile://{origin}\nfile://{work}\n")
    came = scanned(tmp_path / "store", listed)
    assert [head["state"] for head in came.heads.values()] == ["checked"] * 5
    assert not ran.exists(), ran.read_text()


def test_bombs_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "STREAM_BYTES", 3_000_000)
    monkeypatch.setattr(names, "MEMBERS", 50)
    with tarfile.open(tmp_path / "large-1.tar.gz", "w:gz") as archive:
        zeros = tarfile.TarInfo("large-1/zeros.bin")
        zeros.size = 4_000_000
        archive.addfile(zeros, io.BytesIO(bytes(zeros.size)))
    wheel(tmp_path / "many-1.zip", {f"{number}.txt": "" for number in range(60)})
    (tmp_path / "broken-1.whl").write_bytes(b"PK\x03\x04 no archive")
    for name, said in (
        ("large-1.tar.gz", "a bomb"),
        ("many-1.zip", "more than 50 entries"),
        ("broken-1.whl", "no archive"),
    ):
        with pytest.raises(Unopened, match=said):
            archives.read(str(tmp_path / name))


def test_a_large_file_of_zeros_costs_itself(tmp_path: Path) -> None:
    wheel(tmp_path / "p-1.zip", {"zeros.py": bytes(40_000_000), "train.py": RAISES})
    came = scanned(tmp_path / "store", tmp_path / "p-1.zip")
    assert counts(came) == {"p": ERROR}
    assert unread(came) == [("zeros.py", "larger than 16 MB, which is as much as is read")]


def test_an_archive_that_eats_memory_costs_itself(tmp_path: Path) -> None:
    """A header of a tar file may say that a name has hundreds of millions of letters."""
    pax = tarfile.TarInfo("header")
    pax.type, pax.size = tarfile.XHDTYPE, 600_000_000
    with tarfile.open(tmp_path / "p-1.tar.gz", "w:gz", compresslevel=1) as archive:
        archive.addfile(pax, _Zeros(pax.size))  # type: ignore[arg-type]
    good = wheel(tmp_path / "q-1.zip", {"train.py": RAISES})
    came = scanned(tmp_path / "store", tmp_path / "p-1.tar.gz", good, limits=Limits(memory=250_000_000))
    assert counts(came) == {"q": ERROR}
    ((path, why),) = unread(came)
    assert path == ""
    assert "memory" in why


class _Zeros:
    def __init__(self, left: int) -> None:
        self._left = left

    def read(self, size: int) -> bytes:
        size = min(size, self._left)
        self._left -= size
        return bytes(size)


def test_names_that_are_no_utf_8_are_read(tmp_path: Path) -> None:
    top = folder(tmp_path / "p", {"train.py": RAISES})
    (top / os.fsdecode(b"caf\xe9.py")).write_text(RAISES)
    came = scanned(tmp_path / "store", top)
    assert counts(came) == {"p": {"error GG101": 2}}
