"""Gathers the web pages into build/docs, ready for mkdocs: `python -m docs.build`.

Written by hand are `docs/en` and `docs/ko`. Added from elsewhere: the pages of the rules, the settings from their
model, the table of operations, the drawn pictures, and the repository's own pages.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from docs import cells, diagrams, needs, playground, settings, trials
from gradguard.ide.pages import stem
from gradguard.ops import listing, table
from gradguard.rules import registry

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
OUT = ROOT / "build" / "docs"
REPOSITORY = "https://github.com/gradguard/gradguard/blob/main/"
RUNTIME = re.compile(r"<!-- runtime: (\w+) -->\n")
PROGRAM = re.compile(r"^```python\n.*?^```$", re.MULTILINE | re.DOTALL)
NO_PAGES = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"/>\n'
)
EXAMPLE, USE_INSTEAD = 3, 4
"""Places of these sections in the page of a rule, in every language."""

VERDICTS = {
    "en": {
        "raises": "torch raises, as quoted below",
        "silent": "torch raises nothing, and values or gradients are wrong",
        "leak": "torch raises nothing, and more is kept in memory than by the repaired program",
        "sync": "torch raises nothing, and the host reads the device more often than in the repaired program",
        "ok": "torch raises nothing",
        "repaired": "torch raises nothing, and gradients are right",
    },
    "ko": {
        "raises": "torch에서 아래 인용한 오류가 발생합니다",
        "silent": "torch에서 오류 없이 값이나 기울기가 틀립니다",
        "leak": "torch에서 오류 없이 고친 프로그램보다 더 많은 메모리를 붙잡고 있습니다",
        "sync": "torch에서 오류 없이 고친 프로그램보다 더 자주 장치를 기다립니다",
        "ok": "torch에서 오류가 발생하지 않습니다",
        "repaired": "torch에서 오류가 없고 기울기가 맞습니다",
    },
}
WORDS = {
    "en": {
        "rules": "Rules",
        "rules-intro": "Every mistake that gradguard reports, with its code and its name.",
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
        "rules": "규칙",
        "rules-intro": "gradguard가 보고하는 모든 실수와 그 코드, 이름.",
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
        (source / language / "needs.md").write_text(needs.page(language), "utf-8")
        (source / language / "ops.md").write_text(operations(language), "utf-8")
        images = source / language / "images"
        shutil.copytree(DOCS / "images", images, dirs_exist_ok=True)
        for name in diagrams.names():
            (images / name).write_text(diagrams.drawn(name, language), "utf-8")
    # The theme asks beside every page for a map of the site, to find the translation that the page links to already.
    for folder in {path.parent for path in source.glob("**/*.md")} - {source / "en"}:
        (folder / "sitemap.xml").write_text(NO_PAGES, "utf-8")
    for name in ("CONTRIBUTING", "ARCHITECTURE", "CHANGELOG"):
        text = own_page((ROOT / f"{name}.md").read_text("utf-8"))
        (source / "en" / f"{name.lower()}.md").write_text(text, "utf-8")
    assets = source / "assets"
    assets.mkdir()
    for name in ("ops.js", "ops.css"):
        shutil.copy(DOCS / "assets" / name, assets)
    playground.write(source)
    lines = listing.render_ops(table.load())
    tried = {line.name: trials.program(line) for line in lines}
    packed = {name: playground.packed(text) if text else "" for name, text in tried.items()}
    for language in WORDS:
        rows = [[line.name, *told(line, language), line.formula, packed[line.name]] for line in lines]
        data = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
        (assets / f"ops-{language}.js").write_text(f"globalThis.gradguardOps = {data};\n", "utf-8")
    for path in source.glob("??/**/*.md"):
        path.write_text(described(path.read_text("utf-8")), "utf-8")
    shutil.copy(DOCS / "mkdocs.yml", OUT / "mkdocs.yml")
    print(f"{OUT.relative_to(ROOT)}: {len(registry.rules())} rules, {len(lines)} operations")


def described(page: str) -> str:
    """A page with a description of its own, as search engines show it: its first sentence, where it has none."""
    matched = re.match(r"(---\n.*?^---\n)?(.*)", page, re.DOTALL | re.MULTILINE)
    assert matched is not None
    head, body = matched[1] or "", matched[2]
    if "description:" in head:
        return page
    plain = re.sub(r"^```.*?^```$|^[<#|!].*?$", "", body, flags=re.DOTALL | re.MULTILINE)
    words = " ".join(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", plain).replace("`", "").replace("*", "").split())
    first = re.split(r"(?<=[.:])\s", words[:300])[0].rstrip(":")
    meta = f"description: {json.dumps(first, ensure_ascii=False)}\n"
    return f"---\n{meta}{head[4:]}{body}" if head else f"---\n{meta}---\n\n{body}"


def rules(folder: Path, language: str) -> None:
    """The page of each rule with torch's verdict in words, and an index."""
    folder.mkdir()
    words = WORDS[language]
    pages = ROOT / "server" / "gradguard" / "rules"
    translated = pages if language == "en" else pages / language
    lines = [
        f"# {words['rules']}\n",
        f"{words['rules-intro']}\n",
        f"| | {words['rule']} | {words['what']} |",
        "|---|---|---|",
    ]
    for rule in registry.rules():
        name = f"{stem(rule.name)}.md"
        text = judged((translated / name).read_text("utf-8"), VERDICTS[language])
        text = playground.tried(text, language)
        (folder / name).write_text(text, "utf-8")
        summary = rule.summary if language == "en" else first_sentence(text)
        lines.append(f"| {rule.code} | [{rule.name}]({name}) | {summary} |")
    (folder / "index.md").write_text("\n".join(lines) + "\n", "utf-8")


def judged(page: str, verdicts: dict[str, str]) -> str:
    """The page of a rule with torch's verdict below each of its programs; tests hold each of them to it."""
    declared = RUNTIME.search(page)
    assert declared is not None, page[:80]
    parts = re.split(r"^(?=## )", page.replace(declared.group(), ""), flags=re.MULTILINE)
    for place, kind in ((EXAMPLE, declared.group(1)), (USE_INSTEAD, "repaired")):
        box = "success" if kind == "repaired" else "info" if kind == "ok" else "failure"
        parts[place] = PROGRAM.sub(rf'\g<0>\n\n!!! {box} "{verdicts[kind]}"', parts[place])
    return "".join(parts)


def first_sentence(page: str) -> str:
    """The first sentence of the first section."""
    body = re.split(r"^## .+$", page, flags=re.MULTILINE)[1]
    return " ".join(body.strip().split("\n\n")[0].split()).split(". ")[0].rstrip(".")


def told(line: listing.Line, language: str) -> list[str]:
    """What a row of the table says in a language, its name and formula aside."""
    english = [line.saves, line.views, line.writes, line.reads]
    return english if language == "en" else [cells.korean(cell) for cell in english]


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
        f'<table><thead><tr>{head}</tr></thead><tbody id="ops" data-source="{depth}assets/ops-{language}.js" data-try="{playground.WORDS[language]["try"]}"></tbody></table>\n'
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
