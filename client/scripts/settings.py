"""Writes the settings page of VS Code from the server's settings model: python client/scripts/settings.py [--check]

Fills `contributes.configuration` of package.json and the `config.*` texts of package.nls.json. With --check
nothing is written and a difference, or a text without Korean translation, ends with exit code 1.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from gradguard.check.catalogue import catalogue
from gradguard.check.schema import selector
from gradguard.check.settings import Kind, Option, default_of, options

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = ROOT / "package.json"
ENGLISH = ROOT / "package.nls.json"
KOREAN = ROOT / "package.nls.ko.json"

Json = dict[str, Any]

VERSION_PATTERN = r"^(auto|\d+\.\d+(\.\d+)?([.+a-z0-9]*)?)$"

OF_THE_CLIENT: tuple[tuple[str, Json, str, dict[str, str]], ...] = (
    (
        "interpreter",
        {"type": "array", "items": {"type": "string"}, "default": [], "scope": "resource"},
        "Python 3.10 or newer that runs the server, and whose torch decides `#gradguard.torchVersion#`, as a command: "
        '`["${workspaceFolder}/.venv/bin/python"]`. Empty: the environment of the Python extension, else `python3` on PATH.',
        {},
    ),
    (
        "importStrategy",
        {
            "type": "string",
            "enum": ["useBundled", "fromEnvironment"],
            "default": "useBundled",
            "scope": "window",
        },
        "Which gradguard runs.",
        {
            "useBundled": "The one that comes with the extension.",
            "fromEnvironment": "The one installed in the interpreter's environment, else the one that comes with the extension.",
        },
    ),
    (
        "path",
        {"type": "array", "items": {"type": "string"}, "default": [], "scope": "window"},
        'A gradguard to run instead, as a command: `["/opt/tools/bin/gradguard"]`. Wins over `#gradguard.interpreter#`.',
        {},
    ),
    (
        "args",
        {"type": "array", "items": {"type": "string"}, "default": [], "scope": "window"},
        "More arguments for `gradguard server`.",
        {},
    ),
    (
        "logLevel",
        {
            "type": "string",
            "enum": ["error", "warning", "info", "debug"],
            "default": "info",
            "scope": "window",
        },
        "How much the server writes to the log.",
        {},
    ),
    (
        "trace.server",
        {"type": "string", "enum": ["off", "messages", "verbose"], "default": "off", "scope": "window"},
        "Writes the messages between the editor and the server to the log.",
        {
            "off": "Nothing.",
            "messages": "The name of each message.",
            "verbose": "Each message with its content.",
        },
    ),
)
"""Key without prefix, schema, description, description of each choice."""


def shape(name: str, option: Option) -> Json:
    """JSON schema of one option of the server."""
    strings = {"type": "array", "items": {"type": "string"}}
    match option.kind:
        case Kind.BOOL:
            return {"type": "boolean", "default": default_of(name)}
        case Kind.CHOICE:
            return {
                "type": "string",
                "enum": [value for value, _ in option.choices],
                "default": default_of(name),
            }
        case Kind.VERSION:
            return {"type": "string", "pattern": VERSION_PATTERN, "default": default_of(name)}
        case Kind.STRINGS | Kind.PATTERNS:
            return {**strings, "default": list(default_of(name))}
        case Kind.RULES:
            return {
                "type": "array",
                "items": {"type": "string", "examples": selectors(), "pattern": selector()},
                "default": [],
                "uniqueItems": True,
            }
        case Kind.LEVELS:
            level = {"type": "string", "enum": [value for value, _ in option.choices]}
            level["enumDescriptions"] = [meaning for _, meaning in option.choices]
            known = {
                rule.code: {**level, "description": f"{rule.name}: {rule.summary}"}
                for rule in catalogue().rules
            }
            return {
                "type": "object",
                "properties": known,
                "patternProperties": {selector(): level},
                "additionalProperties": False,
                "default": {},
            }
        case Kind.RULES_BY_GLOB:
            rules = {"type": "array", "items": {"type": "string", "pattern": selector()}}
            return {"type": "object", "additionalProperties": rules, "default": {}}


def selectors() -> list[str]:
    return [text for rule in catalogue().rules for text in (rule.code, rule.name)]


def configuration() -> tuple[Json, dict[str, str]]:
    """`contributes.configuration` and the English texts it refers to."""
    properties: dict[str, Json] = {}
    texts: dict[str, str] = {}

    def add(key: str, schema: Json, doc: str, choices: dict[str, str]) -> None:
        schema["order"] = len(properties)
        schema["markdownDescription"] = f"%config.{key}%"
        texts[f"config.{key}"] = doc
        if choices:
            schema["enumDescriptions"] = [f"%config.{key}.{value}%" for value in schema["enum"]]
            texts.update({f"config.{key}.{value}": choices[value] for value in schema["enum"]})
        properties[f"gradguard.{key}"] = schema

    for name, option in sorted(options().items(), key=lambda pair: not pair[1].editor_only):
        choices = (
            {value: sentence(meaning) for value, meaning in option.choices}
            if option.kind is Kind.CHOICE
            else {}
        )
        add(option.editor_key, {**shape(name, option), "scope": "resource"}, option.doc, choices)
    for key, schema, doc, choices in OF_THE_CLIENT:
        add(key, dict(schema), doc, choices)
    return {"title": "gradguard", "properties": properties}, texts


def sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def dump(value: Json) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def main(check: bool) -> int:
    section, texts = configuration()
    manifest: Json = json.loads(MANIFEST.read_text(encoding="utf-8"))
    english: Json = json.loads(ENGLISH.read_text(encoding="utf-8"))
    korean: Json = json.loads(KOREAN.read_text(encoding="utf-8"))
    manifest["contributes"]["configuration"] = section
    english = {key: text for key, text in english.items() if not key.startswith("config.")} | texts
    problems = [
        f"{KOREAN.name}: {key} is missing ({text})" for key, text in english.items() if key not in korean
    ]
    problems += [f"{KOREAN.name}: {key} is not used" for key in korean if key not in english]
    for path, value in ((MANIFEST, manifest), (ENGLISH, english)):
        if path.read_text(encoding="utf-8") == dump(value):
            continue
        if check:
            problems.append(f"{path.name}: the settings are not those of the server: run `npm run settings`")
        else:
            path.write_text(dump(value), encoding="utf-8")
            print(f"{path.name}: written")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
