"""The generated parts of README.md: `python -m docs.generate`, with `--check` only to compare.

A generated part stands between `<!-- generated: name -->` and `<!-- end -->`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from docs import figures
from gradguard.ide.pages import page, stem
from gradguard.rules import registry

ROOT = Path(__file__).resolve().parents[1]
MEASURED = ROOT / "docs" / "measured.json"
PART = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
RUNTIME = re.compile(r"<!-- runtime: (\w+) -->")
TORCH = {
    "raises": "raises",
    "silent": "nothing; wrong gradients or values",
    "leak": "nothing; memory is kept",
    "sync": "nothing; the device waits",
    "ok": "nothing",
}


def rules() -> str:
    """The table of all rules."""
    lines = ["| code | rule | what is reported | what torch says of the example |", "|---|---|---|---|"]
    for rule in registry.rules():
        declared = RUNTIME.search(page(rule.name) or "")
        verdict = TORCH[declared.group(1)] if declared else ""
        off = "" if rule.on else " (off by default)"
        link = f"[{rule.name}](server/gradguard/rules/{stem(rule.name)}.md)"
        first = rule.summary.split()[0]
        summary = rule.summary if "." in first else rule.summary[:1].upper() + rule.summary[1:]
        lines.append(f"| {rule.code} | {link} | {summary}{off} | {verdict} |")
    return "\n".join(lines) + "\n"


def measured() -> str:
    """How sure we are, in figures."""
    seen = figures.measure()
    return (
        f"- **{seen.cases} training programs** written after public reports, each run under torch: "
        f"{seen.found} of {seen.mistakes} mistakes are found at their line, and {seen.alarmed} of {seen.clean} clean "
        "twins get a warning.\n"
        f"- **{seen.facts} facts**, the smallest programs that show one property of autograd: the checker agrees with "
        f"torch on {seen.agreed}, with {seen.false_errors} false errors.\n"
    )


def more() -> str:
    """What other runs have measured: a line each of `more`, and the neighbours on the recorded programs."""
    figures = json.loads(MEASURED.read_text("utf-8"))
    lines = [f"- {line}\n" for line in figures["more"]]
    told = []
    for each in figures["neighbours"]:
        found = f"{each['found']} of the mistakes" if each["found"] else "none"
        aside = f" ({each['of_them']})" if each["of_them"] else ""
        told.append(
            f"{each['name']} {each['version']} finds {found}{aside} and warns on {each['alarmed']} clean twins"
        )
    return (
        "".join(lines)
        + "\nOn the same training programs, when any report on the marked line counts: "
        + "; ".join(told)
        + ".\n"
    )


GENERATED = {"rules": rules, "measured": measured, "more": more}


def main() -> int:
    """Write the parts, or with `--check` name those that differ; the exit code."""
    check = sys.argv[1:] == ["--check"]
    stale = []
    for path in (ROOT / "README.md",):
        text = path.read_text("utf-8")

        def fill(match: re.Match[str]) -> str:
            return match.group(1) + GENERATED[match.group(2)]() + match.group(3)

        wanted = PART.sub(fill, text)
        if wanted != text:
            stale.append(path.relative_to(ROOT))
            if not check:
                path.write_text(wanted, "utf-8")
    for path in stale:
        print(f"{path}: {'generated parts are out of date; run make generated' if check else 'written'}")
    return int(check and bool(stale))


if __name__ == "__main__":
    raise SystemExit(main())
