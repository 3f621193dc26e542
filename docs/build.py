"""Gathers the web pages into build/docs, ready for mkdocs: `python -m docs.build`.

Written by hand are `docs/en` and `docs/ko`. Added from elsewhere: the pages of the rules, the settings from their
model, the table of operations, the drawn pictures, and the repository's own pages.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from docs import diagrams, settings
from gradguard.ide.pages import stem
from gradguard.ops import listing, table
from gradguard.rules import registry

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
OUT = ROOT / "build" / "docs"
REPOSITORY = "https://github.com/gradguard/gradguard/blob/main/"
RUNTIME = re.compile(r"<!-- runtime: (\w+) -->\n")

VERDICTS = {
    "en": {
        "raises": "raises, as quoted below",
        "silent": "nothing is raised, and values or gradients are wrong",
        "leak": "nothing is raised, and more is kept in memory than by the repaired program",
        "sync": "nothing is raised, and the host reads the device more often than in the repaired program",
        "ok": "nothing is raised",
    },
    "ko": {
        "raises": "아래 인용한 오류가 발생합니다",
        "silent": "오류 없이 값이나 기울기가 틀립니다",
        "leak": "오류 없이 고친 프로그램보다 더 많은 메모리를 붙잡고 있습니다",
        "sync": "오류 없이 고친 프로그램보다 더 자주 장치를 기다립니다",
        "ok": "오류가 발생하지 않습니다",
    },
}
WORDS = {
    "en": {
        "torch": "What torch did with the examples",
        "rules": "Rules",
        "rule": "rule",
        "what": "what is reported",
        "ops": "What each operation saves",
        "ops-intro": "Every public callable of torch {version} that the checker knows: what its node keeps for backward, what "
        "shares memory, what is written, and whether the host waits. Type a part of a name, or of what is saved. The "
        "same from the command line: `gradguard ops softmax`.",
        "search": "softmax, relu_, result ...",
        "columns": ("operation", "saves", "shares memory", "writes", "waits", "gradient"),
    },
    "ko": {
        "torch": "torch가 예제를 실행한 결과",
        "rules": "규칙",
        "rule": "규칙",
        "what": "보고하는 것",
        "ops": "연산이 저장하는 것",
        "ops-intro": "검사기가 아는 torch {version}의 모든 공개 연산입니다. 역전파를 위해 무엇을 저장하는지, 무엇과 메모리를 "
        "공유하는지, 무엇을 쓰는지, 호스트가 기다리는지를 보여 줍니다. 이름이나 저장되는 것의 일부를 입력하세요. "
        "명령줄에서는 `gradguard ops softmax`입니다.",
        "search": "softmax, relu_, result ...",
        "columns": ("연산", "저장", "메모리 공유", "쓰기", "대기", "기울기"),
    },
}


def main() -> None:
    """Write build/docs anew."""
    shutil.rmtree(OUT, ignore_errors=True)
    source = OUT / "src"
    for language in WORDS:
        shutil.copytree(DOCS / language, source / language)
        rules(source / language / "rules", language)
        (source / language / "settings.md").write_text(settings.page(language), "utf-8")
        (source / language / "ops.md").write_text(operations(language), "utf-8")
        images = source / language / "images"
        shutil.copytree(DOCS / "images", images, dirs_exist_ok=True)
        for name in diagrams.names():
            (images / name).write_text(diagrams.drawn(name, language), "utf-8")
    for name in ("CONTRIBUTING", "ARCHITECTURE", "CHANGELOG"):
        text = own_page((ROOT / f"{name}.md").read_text("utf-8"))
        (source / "en" / f"{name.lower()}.md").write_text(text, "utf-8")
    assets = source / "assets"
    assets.mkdir()
    for name in ("ops.js", "ops.css"):
        shutil.copy(DOCS / "assets" / name, assets)
    known = table.load()
    rows = [
        [line.name, line.saves, line.views, line.writes, line.reads, line.formula]
        for line in listing.render_ops(known)
    ]
    data = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    (assets / "ops-data.js").write_text(f"globalThis.gradguardOps = {data};\n", "utf-8")
    shutil.copy(DOCS / "mkdocs.yml", OUT / "mkdocs.yml")
    print(f"{OUT.relative_to(ROOT)}: {len(registry.rules())} rules, {len(rows)} operations")


def rules(folder: Path, language: str) -> None:
    """The page of each rule with torch's verdict in words, and an index."""
    folder.mkdir()
    words, verdicts = WORDS[language], VERDICTS[language]
    pages = ROOT / "server" / "gradguard" / "rules"
    translated = pages if language == "en" else pages / language
    lines = [f"# {words['rules']}\n", f"| | {words['rule']} | {words['what']} |", "|---|---|---|"]
    for rule in registry.rules():
        name = f"{stem(rule.name)}.md"
        text = (translated / name).read_text("utf-8")
        declared = RUNTIME.search(text)
        if declared:
            verdict = f'!!! info "{words["torch"]}"\n    {verdicts[declared.group(1)]}\n'
            text = text[: declared.start()] + verdict + text[declared.end() :]
        (folder / name).write_text(text, "utf-8")
        summary = rule.summary if language == "en" else first_sentence(text)
        lines.append(f"| {rule.code} | [{rule.name}]({name}) | {summary} |")
    (folder / "index.md").write_text("\n".join(lines) + "\n", "utf-8")


def first_sentence(page: str) -> str:
    """The first sentence of the first section."""
    body = re.split(r"^## .+$", page, flags=re.MULTILINE)[1]
    return " ".join(body.strip().split("\n\n")[0].split()).split(". ")[0].rstrip(".")


def operations(language: str) -> str:
    """The page that browses the table."""
    words = WORDS[language]
    head = "".join(f"<th>{column}</th>" for column in words["columns"])
    intro = str(words["ops-intro"]).format(version=table.load().version)
    depth = "" if language == "en" else "../"
    return (
        f"---\nhide: [toc]\n---\n\n# {words['ops']}\n\n{intro}\n\n"
        f'<input id="ops-search" type="search" placeholder="{words["search"]}" class="md-input md-input--stretch">\n'
        '<p id="ops-count"></p>\n\n'
        f'<table><thead><tr>{head}</tr></thead><tbody id="ops" data-source="{depth}assets/ops-data.js"></tbody></table>\n'
    )


def own_page(text: str) -> str:
    """A page of the repository with links that hold on the web."""

    def link(match: re.Match[str]) -> str:
        label, target = match.groups()
        if "://" in target or target.startswith("#"):
            return match.group(0)
        if re.fullmatch(r"(CONTRIBUTING|ARCHITECTURE|CHANGELOG)\.md", target):
            return f"[{label}]({target.lower()})"
        return f"[{label}]({REPOSITORY}{target})"

    return re.sub(r"\[([^\]]*)\]\(([^)\s]+)\)", link, text)


if __name__ == "__main__":
    main()
