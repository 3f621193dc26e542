"""What the client can do, asked once."""

from __future__ import annotations

from dataclasses import dataclass

from lsprotocol import types as lsp
from pygls.capabilities import get_capability


@dataclass(frozen=True, slots=True)
class Client:
    """Capabilities that change what is sent."""

    name: str = ""
    language: str = "en"
    pull: bool = False
    refresh_diagnostics: bool = False
    refresh_hints: bool = False
    refresh_lenses: bool = False
    related: bool = False
    links: bool = False
    data: bool = False
    tags: frozenset[lsp.DiagnosticTag] = frozenset()
    markdown: bool = False
    lazy_edits: bool = False
    action_literals: bool = True
    preferred: bool = False
    disabled: bool = False
    versioned_edits: bool = False
    apply_edit: bool = False
    configuration: bool = False
    watches: bool = False
    registers_configuration: bool = False
    progress: bool = False
    shows_documents: bool = False
    creates_files: bool = False
    shows_status: bool = False
    """It is this project's extension, whose status item tells of wrong settings."""


def client(params: lsp.InitializeParams) -> Client:
    """Read what the client announced."""
    announced = params.capabilities

    def can(path: str) -> bool:
        return bool(get_capability(announced, path, False))

    properties = get_capability(announced, "text_document.code_action.resolve_support.properties", None) or ()
    tags = get_capability(announced, "text_document.publish_diagnostics.tag_support.value_set", None) or ()
    formats = get_capability(announced, "text_document.hover.content_format", None) or ()
    publish = "text_document.publish_diagnostics"
    pull = get_capability(announced, "text_document.diagnostic", None) is not None
    return Client(
        name=params.client_info.name if params.client_info else "",
        language=(params.locale or "en").lower().replace("_", "-").split("-")[0],
        pull=pull,
        refresh_diagnostics=can("workspace.diagnostics.refresh_support"),
        refresh_hints=can("workspace.inlay_hint.refresh_support"),
        refresh_lenses=can("workspace.code_lens.refresh_support"),
        related=can(f"{publish}.related_information") or can("text_document.diagnostic.related_information"),
        links=can(f"{publish}.code_description_support")
        or can("text_document.diagnostic.code_description_support"),
        data=can(f"{publish}.data_support") or can("text_document.diagnostic.data_support"),
        tags=frozenset(tags),
        markdown=lsp.MarkupKind.Markdown in formats,
        lazy_edits="edit" in properties and can("text_document.code_action.data_support"),
        action_literals=get_capability(
            announced, "text_document.code_action.code_action_literal_support", None
        )
        is not None,
        preferred=can("text_document.code_action.is_preferred_support"),
        disabled=can("text_document.code_action.disabled_support"),
        versioned_edits=can("workspace.workspace_edit.document_changes"),
        apply_edit=can("workspace.apply_edit"),
        configuration=can("workspace.configuration"),
        watches=can("workspace.did_change_watched_files.dynamic_registration"),
        registers_configuration=can("workspace.did_change_configuration.dynamic_registration"),
        progress=can("window.work_done_progress"),
        shows_documents=can("window.show_document.support"),
        creates_files="create"
        in (get_capability(announced, "workspace.workspace_edit.resource_operations", None) or ()),
        shows_status=isinstance(params.initialization_options, dict)
        and params.initialization_options.get("status") is True,
    )
