"""The protocol's rules for messages that are wrong, early or late, and document sync that keeps its own texts.

pygls closes over these cases by logging; a client then waits for ever for its answer. Here each request gets
one answer, whatever it contained. Document notifications go straight to the session: pygls' own text documents
split lines at form feeds and U+2028, which editors do not.
"""

from __future__ import annotations

import json
import logging
from typing import Any, Protocol, cast

import attrs
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.protocol import LanguageServerProtocol, lsp_method

from gradguard.lsp.session import Session

log = logging.getLogger(__name__)

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
NOT_INITIALIZED = -32002
FARTHEST = 2**31 - 1
"""The last line, and the last character of one, that the protocol knows."""


class Host(Protocol):
    """The server that the messages are for."""

    session: Session

    def trace(self, message: str, verbose: str | None = None) -> None:
        """Tell the client what happens, if it asked for it."""

    def stop(self, code: int | None) -> None:
        """End the process."""


class StrictProtocol(LanguageServerProtocol):
    """pygls' protocol with strict answers."""

    @property
    def _host(self) -> Host:
        return cast(Host, self._server)

    @property
    def shutting_down(self) -> bool:
        """Whether a shutdown request came."""
        return bool(self._shutdown)

    @property
    def running(self) -> bool:
        """Whether the client may be told things: between `initialize` and `shutdown`."""
        return self._workspace is not None and not self._shutdown

    def receive(self, body: bytes) -> None:
        """Handle the body of one message; never raises."""
        try:
            data = json.loads(body)
        except (ValueError, RecursionError) as error:
            self.refuse(None, PARSE_ERROR, f"not JSON: {error}")
            return
        try:
            self._receive(data)
        except Exception:
            log.exception("unable to handle a message")

    def _receive(self, data: Any) -> None:
        if not isinstance(data, dict) or data.get("jsonrpc") != "2.0":
            self.refuse(_id(data), INVALID_REQUEST, "not a JSON-RPC 2.0 message")
            return
        method = data.get("method")
        if "id" in data and (_id(data) is None or not isinstance(method, (str, type(None)))):
            self.refuse(_id(data), INVALID_REQUEST, "id must be a number or text, method a text")
            return
        if method is None and not ({"result", "error"} & data.keys() and "id" in data):
            self.refuse(_id(data), INVALID_REQUEST, "neither a request nor a response")
            return
        if method is not None and "id" in data and _is_notification(self.get_message_type(method)):
            self.refuse(_id(data), INVALID_REQUEST, f"{method} is a notification")
            return
        if isinstance(method, str) and not self._in_season(method, data):
            return
        if method is not None:
            data.setdefault("params", None)
            if self.trace != lsp.TraceValue.Off:
                self._host.trace(f"received {method}", json.dumps(data["params"])[:10_000])
        if method == lsp.TEXT_DOCUMENT_DID_CHANGE:
            _clamp(data["params"])
        try:
            message = self.structure_message(data)
        except JsonRpcException:
            if method is not None and "id" in data:
                self.refuse(_id(data), INVALID_PARAMS, f"invalid parameters for {method}")
            else:
                log.warning("ignored a malformed %s", method or "response")
            return
        self.handle_message(message)

    def _in_season(self, method: str, data: dict[str, Any]) -> bool:
        """Whether this message may come now; answers it when it may not."""
        request = "id" in data
        if self._shutdown:
            if request:
                self.refuse(_id(data), INVALID_REQUEST, "the server is shutting down")
            return method == lsp.EXIT
        if method == lsp.INITIALIZE:
            if self._workspace is not None and request:
                self.refuse(_id(data), INVALID_REQUEST, "initialize was sent before")
                return False
            return True
        if self._workspace is None and method != lsp.EXIT:
            if request:
                self.refuse(_id(data), NOT_INITIALIZED, "the server is not initialized")
            return False
        return True

    def refuse(self, request: int | str | None, code: int, message: str) -> None:
        """Answer a message with an error."""
        log.warning("refused a message: %s", message)
        self._send_data(
            lsp.ResponseErrorMessage(id=request, error=lsp.ResponseError(code=code, message=message))
        )

    @lsp_method(lsp.EXIT)
    def lsp_exit(self, *_: Any) -> None:  # type: ignore[override]
        """End the process: 0 after a shutdown request, else 1."""
        self._host.stop(0 if self._shutdown else 1)

    @lsp_method(lsp.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: lsp.DidOpenTextDocumentParams) -> None:
        """A document is the editor's from now on."""
        self._host.session.opened(params.text_document)

    @lsp_method(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: lsp.DidChangeTextDocumentParams) -> None:
        """A document was edited."""
        document = params.text_document
        self._host.session.changed(document.uri, document.version, params.content_changes)

    @lsp_method(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: lsp.DidCloseTextDocumentParams) -> None:
        """A document is the disk's again."""
        self._host.session.closed(params.text_document.uri)

    @lsp_method(lsp.NOTEBOOK_DOCUMENT_DID_OPEN)
    def lsp_notebook_document__did_open(self, params: lsp.DidOpenNotebookDocumentParams) -> None:
        """A notebook with the texts of its cells."""
        self._host.session.notebook_opened(params)

    @lsp_method(lsp.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def lsp_notebook_document__did_change(self, params: lsp.DidChangeNotebookDocumentParams) -> None:
        """Cells were edited, added, moved or removed."""
        self._host.session.notebook_changed(params)

    @lsp_method(lsp.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def lsp_notebook_document__did_close(self, params: lsp.DidCloseNotebookDocumentParams) -> None:
        """A notebook is gone."""
        self._host.session.notebook_closed(params)


def _clamp(params: Any) -> None:
    """Bring positions into the protocol's range: an edit that is left out would move every finding after it."""
    changes = params.get("contentChanges") if isinstance(params, dict) else None
    for change in changes if isinstance(changes, list) else ():
        where = change.get("range") if isinstance(change, dict) else None
        for end in where.values() if isinstance(where, dict) else ():
            for name, value in end.items() if isinstance(end, dict) else ():
                if isinstance(value, int) and not 0 <= value <= FARTHEST:
                    end[name] = min(max(value, 0), FARTHEST)


def _is_notification(kind: type[Any] | None) -> bool:
    return kind is not None and "id" not in {each.name for each in attrs.fields(kind)}


def _id(data: Any) -> int | str | None:
    found = data.get("id") if isinstance(data, dict) else None
    return found if isinstance(found, (int, str)) and not isinstance(found, bool) else None
