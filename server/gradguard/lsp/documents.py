"""Open documents as immutable snapshots, and edits to them in the client's own units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lsprotocol import types as lsp
from pygls import uris

from gradguard.lsp.parts import Text, text_of
from gradguard.source.lines import LineIndex

PYTHON = "python"


@dataclass(frozen=True, slots=True)
class Document:
    """One version of one open text. `version` is the client's, None where it gives none."""

    uri: str
    path: str
    """Its place on disk; the URI itself for a text that has none (untitled)."""
    language: str
    version: int | None
    content: Text

    @property
    def text(self) -> str:
        """The whole text."""
        return self.content.text

    @property
    def index(self) -> LineIndex:
        """Its lines."""
        return self.content.index

    @property
    def python(self) -> bool:
        """Whether the client takes it for Python, or does not say."""
        return self.language in (PYTHON, "")

    def edited(
        self, version: int | None, changes: Sequence[lsp.TextDocumentContentChangeEvent], encoding: str
    ) -> Document:
        """The next version. Positions outside the text are clamped to it."""
        return replace(self, version=version, content=self.content.edited(changes, encoding))


class Documents:
    """The open documents by URI, and by path the text that other files see."""

    def __init__(self) -> None:
        self._documents: dict[str, Document] = {}
        self._at: dict[str, dict[str, Document]] = {}
        self.texts: dict[str, str] = {}
        """Texts by path, always the newest. Other threads may look a path up here."""

    def __contains__(self, uri: str) -> bool:
        return uri in self._documents

    def __len__(self) -> int:
        return len(self._documents)

    def get(self, uri: str) -> Document | None:
        """The document of a URI."""
        return self._documents.get(uri)

    def put(self, document: Document) -> None:
        """A document was opened, or is another version now. Of several with one path the last opened counts."""
        self._documents[document.uri] = document
        here = self._at.setdefault(document.path, {})
        here[document.uri] = document
        self._tell(document.path, here)

    def drop(self, uri: str) -> None:
        """A document is no longer open."""
        document = self._documents.pop(uri, None)
        if document is not None:
            here = self._at[document.path]
            del here[uri]
            self._tell(document.path, here)

    def _tell(self, path: str, here: dict[str, Document]) -> None:
        if here:
            self.texts[path] = next(reversed(here.values())).text
        else:
            del self._at[path], self.texts[path]


def document(item: lsp.TextDocumentItem) -> Document:
    """A document as it was opened."""
    return Document(item.uri, path_of(item.uri), item.language_id, item.version, text_of(item.text))


def path_of(uri: str) -> str:
    """Path of a file URI; any other URI as it is."""
    return uris.to_fs_path(uri) or uri


def uri_of(path: str) -> str:
    """URI of a path; what is a URI already stays as it is."""
    if "://" in path or path.startswith("untitled:"):
        return path
    return uris.from_fs_path(path) or path
