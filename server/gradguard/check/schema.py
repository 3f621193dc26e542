"""The settings described: a JSON Schema of `[tool.gradguard]` and a reference page in Markdown.

`python -m gradguard.check.schema` prints the schema, `--markdown` the page.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from gradguard.check.catalogue import catalogue
from gradguard.check.settings import Kind, Option, default_of, options

DIALECT = "http://json-schema.org/draft-07/schema#"


def schema() -> dict[str, Any]:
    """JSON Schema of the `[tool.gradguard]` table."""
    return {
        "$schema": DIALECT,
        "title": "gradguard",
        "description": "Settings of gradguard in [tool.gradguard] of pyproject.toml.",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            option.key: {**value_schema(option), "description": option.doc, "default": plain_default(name)}
            for name, option in options().items()
            if not option.editor_only
        },
    }


def value_schema(option: Option) -> dict[str, Any]:
    """JSON Schema of the values that an option takes."""
    strings: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
    rules = {"type": "array", "items": {"type": "string", "pattern": selector()}}
    words = [word for word, _ in option.choices]
    match option.kind:
        case Kind.BOOL:
            return {"type": "boolean"}
        case Kind.CHOICE:
            return {"type": "string", "enum": words}
        case Kind.VERSION:
            return {"type": "string", "pattern": r"^(auto|\d+\.\d+.*)$"}
        case Kind.STRINGS | Kind.PATTERNS:
            return strings
        case Kind.RULES:
            return {**rules, "uniqueItems": True}
        case Kind.LEVELS:
            level = {"type": "string", "enum": words}
            return {
                "type": "object",
                "patternProperties": {selector(): level},
                "additionalProperties": False,
            }
        case Kind.RULES_BY_GLOB:
            return {"type": "object", "additionalProperties": rules}


def selector() -> str:
    """Pattern of what names rules: codes, prefixes of codes, names and `ALL`."""
    rules = catalogue().rules
    prefixes = {rule.code[:length] for rule in rules for length in range(2, len(rule.code) + 1)}
    return f"^({'|'.join(['ALL', *sorted(prefixes), *sorted(rule.name for rule in rules)])})$"


def plain_default(name: str) -> Any:
    """The default of a field as JSON has it."""
    option, value = options()[name], default_of(name)
    if option.kind in (Kind.LEVELS, Kind.RULES_BY_GLOB):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


def markdown() -> str:
    """A reference of every option, for the documentation."""
    project = [(name, option) for name, option in options().items() if not option.editor_only]
    editor = [(name, option) for name, option in options().items() if option.editor_only]
    parts = [
        "## In pyproject.toml and in the editor\n\n"
        "In `pyproject.toml` below `[tool.gradguard]`; in an editor as `gradguard.…`. Where both are set,\n"
        "`pyproject.toml` wins, so that the editor and the command line report the same.\n",
        *(_section(name, option, f"`{option.key}`") for name, option in project),
        "## In the editor only\n",
        *(_section(name, option, f"`gradguard.{option.editor_key}`") for name, option in editor),
    ]
    return "\n".join(parts)


def _section(name: str, option: Option, title: str) -> str:
    lines = [f"### {title}\n", f"{option.doc}\n"]
    if option.choices:
        lines += [*(f"- `{word}`: {meaning}" for word, meaning in option.choices), ""]
    lines.append(f"Default: `{json.dumps(plain_default(name))}`")
    if not option.editor_only:
        lines[-1] += f" · in an editor: `gradguard.{option.editor_key}`"
    lines.append("")
    if option.example:
        lines.append(f"```toml\n{option.example}\n```\n")
    return "\n".join(lines)


if __name__ == "__main__":
    if sys.argv[1:] == ["--markdown"]:
        print(markdown(), end="")
    else:
        print(json.dumps(schema(), indent=2))
