"""From the words of the command line, and the lines of list files, to the sources of a scan."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from gradguard.cli.refused import Refused
from gradguard.disk.reading import RECORD_BYTES, Unreadable, read_utf8
from gradguard.fleet import archives, repositories
from gradguard.fleet.model import Kind, Source

LISTS = (".txt", ".list")
"""Endings of files that list sources."""

_RELEASE = re.compile(r"(?P<name>.+?)-(?P<version>v?\d[^-]*)(-.*)?")


def sources(words: Sequence[str]) -> list[Source]:
    """What was asked for, each once. Raises Refused with a reason for each word that is none."""
    found: dict[tuple[str, str], Source] = {}
    wrong: list[str] = []
    for where, text, revision, here in _asked(words):
        try:
            source = _source(text, revision, here)
        except Refused as error:
            wrong += [f"{where}{reason}" for reason in error.reasons]
        else:
            found.setdefault((source.location, source.revision), source)
    if wrong:
        raise Refused(*wrong)
    return _told_apart(found.values())


def _asked(words: Sequence[str]) -> Iterator[tuple[str, str, str, str]]:
    """Where it stands, location and revision of each source, and the folder that it is relative to. Raises Refused."""
    for word in words:
        if not (word.lower().endswith(LISTS) and os.path.isfile(word)):
            yield "", word, "", os.getcwd()
            continue
        try:
            text = read_utf8(word, RECORD_BYTES)
        except Unreadable as error:
            raise Refused(f"{word}: {error}") from None
        folder = os.path.dirname(os.path.abspath(word))
        for number, line in enumerate(text.splitlines(), 1):
            location, revision = _line(line)
            if location:
                yield f"{word}:{number}: ", location, revision, folder


def _line(line: str) -> tuple[str, str]:
    """`LOCATION [REVISION]`, a location with blanks in double quotes; what follows ` #` is a remark."""
    line = re.split(r"(?:^|\s)#", line, maxsplit=1)[0].strip()
    quoted = re.fullmatch(r'"([^"]*)"\s*(.*)', line)
    location, revision = quoted.groups() if quoted else (*line.split(None, 1), "", "")[:2]
    return location, revision.strip()


def _source(text: str, revision: str, here: str) -> Source:
    if revision.startswith("-") or any(each.isspace() for each in revision):
        raise Refused(f'"{revision}" is no revision; a line is LOCATION or LOCATION REVISION')
    if repositories.is_address(text):
        return Source(Kind.GIT, text, _tail(re.sub(r"^[^:]*:(//[^/]*)?", "", text), 2), revision)
    if "://" in text:
        known = ", ".join(f"{each}://" for each in repositories.PROTOCOLS)
        raise Refused(f"{text}: no address that repositories are fetched from; those begin with {known}")
    path = os.path.abspath(os.path.join(here, os.path.expanduser(text)))
    if os.path.isdir(path):
        if revision and not repositories.is_repository(path):
            raise Refused(f"{text}: no git repository, so it has no revision {revision}; leave that out")
        kind = Kind.GIT if revision or repositories.is_bare(path) else Kind.FOLDER
        return Source(kind, path, _tail(path.replace(os.sep, "/"), 1), revision)
    if not os.path.lexists(path):
        raise Refused(f"{text}: no such file or folder")
    if not archives.is_archive(path):
        known = " ".join((*archives.ZIPS, *archives.TARS))
        raise Refused(f"{text}: neither a folder nor an archive ({known}) nor a list ({' '.join(LISTS)})")
    name, version = _release(archives.stem(path))
    return Source(Kind.ARCHIVE, path, name, revision or version)


def _release(stem: str) -> tuple[str, str]:
    """Name and version of what an archive holds, the name in the one form that package indexes have."""
    match = _RELEASE.fullmatch(stem)
    name, version = (match["name"], match["version"]) if match else (stem, "")
    return re.sub(r"[-_.]+", "-", name).lower(), version


def _tail(path: str, parts: int) -> str:
    """The last parts of a path, which people know a repository by."""
    names = [part for part in path.removesuffix("/").removesuffix(".git").split("/") if part]
    return "/".join(names[-parts:]) or "source"


def _told_apart(found: Iterable[Source]) -> list[Source]:
    """The same with longer names where two things have one. Releases of a project share its name."""
    listed = list(found)
    for parts in range(2, 12):
        places: dict[str, set[str]] = {}
        for source in listed:
            if source.kind is not Kind.ARCHIVE:
                places.setdefault(source.name, set()).add(source.location)
        shared = {name for name, where in places.items() if len(where) > 1}
        if not shared:
            break
        listed = [
            replace(source, name=_longer(source, parts))
            if source.name in shared and source.kind is not Kind.ARCHIVE
            else source
            for source in listed
        ]
    return listed


def _longer(source: Source, parts: int) -> str:
    path = re.sub(r"^[^:]*:(//)?", "", source.location.replace(os.sep, "/"))
    return _tail(str(PurePosixPath(path)), parts)
