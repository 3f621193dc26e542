"""A SARIF log for each package, as code scanning services take them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import replace

from gradguard.check.catalogue import catalogue
from gradguard.cli.formats import sarif
from gradguard.cli.pages import page
from gradguard.cli.result import Outcome, Trouble, Unread
from gradguard.fleet.results import Result
from gradguard.fleet.scan import Head
from gradguard.fleet.store import RESULTS, Store, place
from gradguard.fleet.tables import below, unread_of
from gradguard.ide.pages import link


def write(heads: Iterable[Head], results: Store, output: Store) -> int:
    """Write one log for each package that was read; how many. Raises OSError."""
    count = 0
    for head in heads:
        data = results.get(place(RESULTS, head["key"])) if head["state"] == "checked" else None
        if data is not None:
            output.put(
                f"sarif/{file_name(head)}", render(head, Result.of(data)).encode("utf-8", "backslashreplace")
            )
            count += 1
    return count


def render(head: Head, result: Result) -> str:
    """The log of a package, with paths as they are in its source."""
    root = head.get("root", "")
    lines = {
        (below(root, finding.path), finding.span.line): texts[at]
        for finding, texts, at in zip(result.findings, result.lines, result.at)
    }
    outcome = Outcome(
        findings=tuple(
            replace(
                each,
                path=below(root, each.path),
                related=tuple(replace(other, path=below(root, other.path)) for other in each.related),
            )
            for each in result.findings
        ),
        limits=tuple(replace(limit, path=below(root, limit.path)) for limit, _ in result.limits),
        troubles=tuple(
            Trouble(path or head["location"], why, unread=Unread.FILE, named=False)
            for path, why in unread_of(head)
        ),
    )
    return sarif.render(
        outcome,
        lambda path, line: lines.get((path, line), ""),
        catalogue().rules if outcome.findings else (),
        page,
        link,
    )


def file_name(head: Head) -> str:
    """A name that people know again, and that is no other package's."""
    known = re.sub(r"[^A-Za-z0-9_.-]+", "_", f"{head['package']}-{head['revision'][:12]}").strip("._-")[:80]
    whole = "\0".join((head["location"], head["revision"], head.get("root", "")))
    digest = hashlib.blake2b(whole.encode("utf-8", "surrogateescape"), digest_size=5).hexdigest()
    return f"{known or 'package'}-{digest}.sarif"
