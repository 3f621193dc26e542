"""Open documents as immutable snapshots, and edits to them in the client's own units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lsprotocol import types as lsp
from pygls import uris

from gradguard.source.lines import LineIndex

PYTHON = "python"


@dataclass(frozen=True, slots=True)
class Document:
    """One version of one open text. `version` is the client's, None where it gives none."""

    uri: str
    language: str
    version: int | None
    text: str
    index: LineIndex = field(compare=False)

    @property
    def path(self) -> str:
        """Its place on disk; the URI itself for a text that has none (untitled)."""
        return path_of(self.uri)

    def edited(
        self, version: int | None, changes: Sequence[lsp.TextDocumentContentChangeEvent], encoding: str
    ) -> Document:
        """The next version. Positions outside the text are clamped to it."""
        text, index = self.text, self.index
        for change in changes:
            if isinstance(change, lsp.TextDocumentContentChangePartial):
                start = offset(index, change.range.start, encoding)
                end = offset(index, change.range.end, encoding)
                start, end = min(start, end), max(start, end)
                text = text[:start] + change.text + text[end:]
            else:
                text = change.text
            index = LineIndex(text)
        return replace(self, version=version, text=text, index=index)


def document(item: lsp.TextDocumentItem) -> Document:
    """A document as it was opened."""
    return Document(item.uri, item.language_id, item.version, item.text, LineIndex(item.text))


def offset(index: LineIndex, position: lsp.Position, encoding: str) -> int:
    """Offset of a client's position."""
    line = position.line + 1
    return index.offset(line, index.column(line, position.character, encoding))


def path_of(uri: str) -> str:
    """Path of a file URI; any other URI as it is."""
    return uris.to_fs_path(uri) or uri


def uri_of(path: str) -> str:
    """URI of a path; what is a URI already stays as it is."""
    if "://" in path or path.startswith("untitled:"):
        return path
    return uris.from_fs_path(path) or path
