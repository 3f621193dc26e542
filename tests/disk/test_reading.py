"""Files are read and written back without a byte changed that need not be."""

from __future__ import annotations

import codecs
import errno
import os
import socket
from pathlib import Path

import pytest

from gradguard.disk.reading import Unreadable, decode, read_bytes, read_file
from gradguard.disk.writing import replace_file
from gradguard.source.decode import Undecodable


@pytest.mark.parametrize(
    "data",
    [
        b"x = 1\n",
        b"x = 1\r\ny = 2\r\n",
        codecs.BOM_UTF8 + b"x = 1\n",
        "s = 'äöü'\n".encode(),
        "# -*- coding: latin-1 -*-\ns = 'äöü'\n".encode("latin-1"),
        "#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\ns = '€'\n".encode("cp1252"),
        "# coding: shift_jis\ns = '漢字'\n".encode("shift_jis"),
        codecs.BOM_UTF8 + b"# coding: utf-8\nx = 1\n",
        b"x = 1\x0cy = 2\r",
        b"",
    ],
)
def test_there_and_back(data: bytes) -> None:
    read = decode(data)
    assert read.encode(read.text) == data
    assert not read.text.startswith("\ufeff")


def test_cookies_are_honoured() -> None:
    assert "äöü" in decode("# -*- coding: latin-1 -*-\ns = 'äöü'\n".encode("latin-1")).text


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"import torch\ns = '\xff'\n", "line 2: not UTF-8 (byte 0xff)"),
        (b"s = '\xe4'\n", "line 1: not UTF-8 (byte 0xe4)"),
        (b"# coding: nonsense\nx = 1\n", "unknown encoding: nonsense"),
        (codecs.BOM_UTF8 + b"# coding: latin-1\nx = 1\n", "encoding problem: utf-8"),
        (b"# coding: hex\nx = 1\n", "is not a text encoding"),
        (b"# coding: ascii\n\ns = '\xe4'\n", "line 3: not valid ascii"),
    ],
)
def test_what_cannot_be_read_says_why(data: bytes, message: str) -> None:
    with pytest.raises(Unreadable) as caught:
        decode(data)
    assert message in str(caught.value)


def test_a_change_that_the_encoding_cannot_express_is_refused() -> None:
    read = decode("# coding: latin-1\n".encode("latin-1"))
    with pytest.raises(Undecodable, match="in the file's encoding iso-8859-1"):
        read.encode("# coding: latin-1\n漢\n")


def test_replacing_keeps_the_mode_and_leaves_nothing_behind(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"old")
    file.chmod(0o754)
    replace_file(file, b"new")
    assert file.read_bytes() == b"new"
    assert file.stat().st_mode & 0o777 == 0o754
    assert os.listdir(tmp_path) == ["a.py"]


def test_a_file_that_is_not_to_be_written_stays(tmp_path: Path) -> None:
    """Its folder would let another file take its place."""
    file = tmp_path / "a.py"
    file.write_bytes(b"old")
    file.chmod(0o444)
    with pytest.raises(PermissionError, match="read-only"):
        replace_file(file, b"new")
    assert file.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.py"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")
def test_replacing_keeps_the_owner(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"old")
    os.chown(file, 1234, 4321)
    replace_file(file, b"new")
    assert (file.stat().st_uid, file.stat().st_gid) == (1234, 4321)


def test_replacing_follows_a_link(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"old")
    link = tmp_path / "link.py"
    link.symlink_to(file)
    replace_file(link, b"new")
    assert link.is_symlink()
    assert file.read_bytes() == b"new"


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="No such file"):
        read_file(tmp_path / "none.py")


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    (tmp_path / "nowhere").symlink_to("missing")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        reasons = {path.name: _reason(path) for path in tmp_path.iterdir()}
    assert reasons == {
        "pipe": "a named pipe, not a file",
        "folder": "a folder, not a file",
        "zero": "a device, not a file",
        "one": "symbolic links that lead in a circle",
        "two": "symbolic links that lead in a circle",
        "nowhere": os.strerror(errno.ENOENT),
        "socket": "a socket, not a file",
    }


def test_reading_stops_at_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(b"x" * 3_000_000)
    assert len(read_bytes(path, 3_000_000)) == 3_000_000
    with pytest.raises(Unreadable, match="larger than 2 MB, which is as much as is read"):
        read_bytes(path, 2_999_999)


def test_a_file_that_does_not_tell_its_size_is_bounded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "grows").write_bytes(b"x")
    monkeypatch.setattr(os, "read", lambda handle, size: b"x" * size)
    with pytest.raises(Unreadable, match="larger than 4 MB"):
        read_bytes(tmp_path / "grows", 4_000_000)


def test_a_pipe_that_takes_the_place_of_a_file_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"x")
    os.mkfifo(tmp_path / "pipe")
    seen = os.stat(tmp_path / "file")
    monkeypatch.setattr(os, "stat", lambda path: seen)
    with pytest.raises(Unreadable, match="a named pipe, not a file"):
        read_bytes(tmp_path / "pipe")


def test_a_name_that_no_file_can_have_is_unreadable(tmp_path: Path) -> None:
    assert "null" in _reason(tmp_path / "a\0b")
    assert _reason(tmp_path / ("a" * 5000))


def test_no_handle_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100)
    (tmp_path / "folder").mkdir()
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(20):
        read_bytes(tmp_path / "file")
        _reason(tmp_path / "folder")
        with pytest.raises(Unreadable):
            read_bytes(tmp_path / "file", 10)
    assert not before or len(os.listdir("/proc/self/fd")) == before


def _reason(path: Path) -> str:
    with pytest.raises(Unreadable) as caught:
        read_bytes(path)
    return str(caught.value)
