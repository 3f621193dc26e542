"""Starts a rule with its page: `python -m docs.new_rule NAME CODE [FOLDER]`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from gradguard.check.catalogue import catalogue
from gradguard.ide.pages import stem

RULES = Path(__file__).resolve().parents[1] / "server" / "gradguard" / "rules"
BANNED = ("no-", "not-", "dont-", "avoid-", "disallow-", "forbid-", "use-", "prefer-", "require-", "missing-")

MODULE = '''"""{code}: {words}."""

from __future__ import annotations

from gradguard.findings import Finding
from gradguard.rules.model import WARNING, Context, Rule, quoted
from gradguard.engine.domain.events import ArgumentWrite, Event


def render(context: Context, event: Event) -> Finding | None:
    """Name the event that the engine emits; here, as an example, a write to an argument."""
    if not isinstance(event, ArgumentWrite):
        return None
    return context.finding(event, f"{{quoted(event.text)}} ...", severity=WARNING)


RULE = Rule("{code}", "{name}", "{words}", (ArgumentWrite,), render, on=False)
'''

PAGE = """# {code} {name}

<!-- runtime: raises -->

## What it does

Reports ...

## Why autograd minds

...

## Example

```python
import torch
```

## Use instead

```python
import torch
```

## What torch says

...

## Fix safety

...

## Limits

...
"""


KOREAN = {
    "What it does": "하는 일",
    "Why autograd minds": "autograd가 문제 삼는 이유",
    "Example": "예제",
    "Use instead": "대신 이렇게",
    "What torch says": "torch가 하는 말",
    "Fix safety": "수정의 안전성",
    "Limits": "한계",
    "Reports ...": "... 보고합니다.",
}
"""What the page says in Korean; the programs are the same."""


def main() -> int:
    """Write the rule, its page and the page in Korean; the exit code."""
    name, code, folder = (sys.argv[1:] + ["", "", ""])[:3]
    problem = _problem(name, code)
    if problem:
        print(f"make new-rule name=some-pattern code=GG113: {problem}", file=sys.stderr)
        return 2
    words = name.replace("-", " ")
    translated = PAGE
    for english, korean in KOREAN.items():
        translated = translated.replace(english, korean)
    file = stem(name)
    for place, template in ((f"{file}.py", MODULE), (f"{file}.md", PAGE), (f"ko/{file}.md", translated)):
        path = Path(folder or RULES) / place
        path.parent.mkdir(exist_ok=True)
        path.write_text(template.format(code=code, name=name, words=words), "utf-8")
        print(f"wrote {path}")
    print(
        "next: the event in engine/domain/events.py, the words in the rule, its pages, then make generated and make test"
    )
    return 0


def _problem(name: str, code: str) -> str:
    rules = catalogue()
    if not re.fullmatch(r"[a-z]+(-[a-z]+)+", name):
        return f"name: {name!r} is not of the form some-pattern"
    if name.startswith(BANNED):
        return f"name: {name!r} must read well after 'allow'; it names the pattern, not the cure"
    if not re.fullmatch(r"GG\d{3}", code):
        return f"code: {code!r} is not of the form GG113"
    for taken in (rules.rule(name), rules.rule(code)):
        if taken is not None:
            return f"{taken.code} {taken.name} exists"
    return ""


if __name__ == "__main__":
    raise SystemExit(main())
