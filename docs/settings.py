"""The page of every setting: those of the model, in both languages, and those that only VS Code has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gradguard.check import schema
from gradguard.check.settings import options

ROOT = Path(__file__).resolve().parents[1]
TITLE = {"en": "Settings", "ko": "설정"}
OF_THE_EXTENSION = {"en": "In VS Code only", "ko": "VS Code에서만"}
DEFAULT = {"en": "Default", "ko": "기본값"}
KOREAN = {
    "## In pyproject.toml and in the editor": "## pyproject.toml과 편집기에서",
    "In `pyproject.toml` below `[tool.gradguard]`; in an editor as `gradguard.…`. Where both are set,\n"
    "`pyproject.toml` wins, so that the editor and the command line report the same.": "`pyproject.toml`에서는 "
    "`[tool.gradguard]` 아래에, 편집기에서는 `gradguard.…`로 적습니다. 둘 다 있으면 `pyproject.toml`을 따르므로\n"
    "편집기와 명령줄이 같은 것을 보고합니다.",
    "## In the editor only": "## 편집기에서만",
    "Default: ": "기본값: ",
    " in an editor: ": " 편집기에서: ",
    ": say nothing": ": 아무 말도 하지 않습니다",
    ": a faint mark, in the editor only": ": 편집기에서만 흐리게 표시합니다",
    ": shown, never fails a run": ": 보여 주지만 실행을 실패시키지 않습니다",
    ": shown, a run exits with 1": ": 보여 주고 종료 코드가 1이 됩니다",
    ": shown in red, a run exits with 1": ": 빨갛게 보여 주고 종료 코드가 1이 됩니다",
}


def page(language: str) -> str:
    """The page. Raises KeyError where a text has no translation."""
    text = schema.markdown()
    if language == "ko":
        for english, korean in {**_of_the_options(), **KOREAN}.items():
            if english not in text:
                raise KeyError(f"docs/settings.py translates a text that is no longer there: {english}")
            text = text.replace(english, korean)
    return f"# {TITLE[language]}\n\n{text}\n{_of_the_extension(language)}"


def _of_the_options() -> dict[str, str]:
    """Korean by English: the extension has every text of the model in both languages."""
    korean = _texts("ko")
    found: dict[str, str] = {}
    for option in options().values():
        key = f"config.{option.editor_key}"
        found[f"\n{option.doc}\n"] = f"\n{korean[key]}\n"
        for word, meaning in option.choices:
            if f"{key}.{word}" in korean:
                found[f"- `{word}`: {meaning}"] = f"- `{word}`: {korean[f'{key}.{word}']}"
    return found


def _of_the_extension(language: str) -> str:
    texts = _texts(language)
    properties = json.loads((ROOT / "package.json").read_text("utf-8"))["contributes"]["configuration"][
        "properties"
    ]
    ours = {f"gradguard.{option.editor_key}" for option in options().values()}
    parts = [f"## {OF_THE_EXTENSION[language]}\n"]
    for name, described in properties.items():
        if name not in ours:
            parts += [
                f"### `{name}`\n",
                *_setting(described, name.removeprefix("gradguard."), texts, language),
            ]
    return "\n".join(parts)


def _setting(described: dict[str, Any], key: str, texts: dict[str, str], language: str) -> list[str]:
    words = [
        f"- `{word}`: {texts[f'config.{key}.{word}']}"
        for word in described.get("enum", ())
        if f"config.{key}.{word}" in texts
    ]
    if described.get("enum") and not words:
        words = [f"- `{word}`" for word in described["enum"]]
    about = texts[f"config.{key}"].replace("`#", "`").replace("#`", "`")
    return [
        f"{about}\n",
        *([*words, ""] if words else []),
        f"{DEFAULT[language]}: `{json.dumps(described['default'])}`\n",
    ]


def _texts(language: str) -> dict[str, str]:
    ending = "" if language == "en" else f".{language}"
    texts: dict[str, str] = json.loads((ROOT / f"package.nls{ending}.json").read_text("utf-8"))
    return texts
