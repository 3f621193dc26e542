"""The playground: its page in each language, what the page reads, and links that open a program in it.

`client/scripts/web.mjs` and `client/scripts/playground.mjs` have made the programs before; `fixtures/playground` holds the examples.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path

from gradguard import __version__
from gradguard.check.catalogue import catalogue
from gradguard.ide.pages import stem
from gradguard.ops import table

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "fixtures" / "playground"
PAGE = ROOT / "build" / "playground"
PYTHON = ROOT / "client" / "dist" / "web"
PARTS = ("worker.js", "python.wasm", "python.zip", "gradguard.zip", "fixes.zip")
PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"  # expect: .*$", re.MULTILINE)

TITLES = {
    "en": {
        "saves": "What each operation saves",
        "item": "item against detach",
        "gan": "GAN",
        "lstm": "LSTM",
        "ppo": "PPO",
        "maml": "MAML",
    },
    "ko": {
        "saves": "연산마다 저장하는 것",
        "item": "item과 detach",
        "gan": "GAN",
        "lstm": "LSTM",
        "ppo": "PPO",
        "maml": "MAML",
    },
}
WORDS = {
    "en": {
        "title": "Try it",
        "intro": "Type or paste a program: mistakes are underlined as in an editor. Rest the mouse on an operation to read what it saves. "
        "**Your program stays in this browser**: the checker itself runs here, and no request carries code. Once loaded "
        "({size} MB compressed), the page works without a network.",
        "example": "Example",
        "link": "Copy link",
        "issue": "Copy as issue",
        "found": "What is found",
        "cursor": "At the cursor",
        "settings": "Settings",
        "torch": "Release of torch",
        "rules": "Rules",
        "newest": "newest known",
        "keys": "Keys: Ctrl+. (Cmd+. on a Mac) lists the fixes at the cursor, F8 goes to the next finding, Tab leaves the editor.",
        "libcst": "Fixes need libcst, which could not be loaded.",
        "waiting": "The program can be read now; findings appear when Python has been loaded.",
        "try": "Try it",
    },
    "ko": {
        "title": "써 보기",
        "intro": "프로그램을 입력하거나 붙여 넣으세요. 실수에는 편집기에서처럼 밑줄이 그어집니다. 연산 위에 마우스를 두면 무엇을 저장하는지 보입니다. "
        "**프로그램은 이 브라우저를 떠나지 않습니다**. 검사기가 여기서 실행되고, 코드를 담은 요청은 없습니다. 한 번 불러오면"
        "(압축 {size} MB) 네트워크 없이도 동작합니다.",
        "example": "예제",
        "link": "링크 복사",
        "issue": "이슈로 복사",
        "found": "찾은 것",
        "cursor": "커서 위치",
        "settings": "설정",
        "torch": "torch 릴리스",
        "rules": "규칙",
        "newest": "아는 것 가운데 최신",
        "keys": "키: Ctrl+.(Mac은 Cmd+.)은 커서 위치의 수정 목록, F8은 다음 결과, Tab은 편집기 밖으로 이동합니다.",
        "libcst": "수정에는 libcst가 필요한데 불러오지 못했습니다.",
        "waiting": "프로그램은 지금 읽을 수 있고, 결과는 Python을 불러온 뒤에 나타납니다.",
        "try": "써 보기",
    },
}


def packed(code: str) -> str:
    """A program as it stands in the address, see client/playground/address.ts."""
    squeeze = zlib.compressobj(9, wbits=-15)
    data = squeeze.compress(code.encode()) + squeeze.flush()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def tried(page: str, language: str, up: str = "../") -> str:
    """A page with a link behind each of its programs that opens it in the playground."""

    def link(match: re.Match[str]) -> str:
        address = f"{up}playground.html#code={packed(match.group(1))}"
        return f'{match.group()}\n\n<a class="gg-try" href="{address}">{WORDS[language]["try"]}</a>'

    return PROGRAM.sub(link, page)


def examples(language: str) -> Iterator[dict[str, str]]:
    """Programs to begin with; their marks are for the tests."""
    for name, title in TITLES[language].items():
        code = MARK.sub("", (EXAMPLES / f"{name}.py").read_text("utf-8"))
        yield {"id": name, "title": title, "code": code}


def page(language: str) -> str:
    """The page, with its first example to be read before any program has been loaded."""
    words = WORDS[language]
    up = "" if language == "en" else "../"
    sizes = json.loads((PYTHON / "parts.json").read_text("utf-8"))["sizes"]
    size = sum(each["zipped"] for each in sizes.values()) / 1e6
    first = html.escape(next(examples(language))["code"])
    return f"""---
hide: [toc, navigation]
---

# {words["title"]}

{words["intro"].format(size=f"{size:.1f}")}

<link rel="stylesheet" href="{up}assets/playground/page.css">
<div id="gg-root" data-home="{up}assets/playground/" data-site="{up}" data-language="{language}">
<div class="gg-bar">
<label>{words["example"]} <select id="gg-examples"></select></label>
<button type="button" id="gg-link" class="md-button">{words["link"]}</button>
<button type="button" id="gg-issue" class="md-button">{words["issue"]}</button>
</div>
<p id="gg-note" role="alert" hidden></p>
<p id="gg-status" role="status">{words["waiting"]}</p>
<div id="gg-editor"><pre><code>{first}</code></pre></div>
<p><small>{words["keys"]}</small></p>
<section id="gg-offers" hidden><h2 id="gg-offers-title" tabindex="-1"></h2><ul id="gg-offers-list"></ul><p id="gg-offers-note"></p></section>
<p id="gg-libcst" hidden>{words["libcst"]}</p>
<section><h2>{words["found"]}</h2><ol id="gg-findings"></ol></section>
<section><h2>{words["cursor"]}</h2><div id="gg-cursor"></div></section>
<details><summary>{words["settings"]}</summary>
<p><label>{words["torch"]} <select id="gg-torch"><option value="auto">{words["newest"]}</option></select></label></p>
<fieldset id="gg-rules"><legend>{words["rules"]}</legend></fieldset>
</details>
</div>
<script type="module" src="{up}assets/playground/page.js"></script>
"""


def write(source: Path) -> None:
    """Put all of it among the sources of the web pages."""
    assets = source / "assets" / "playground"
    assets.mkdir(parents=True)
    for name in PARTS:
        shutil.copy(PYTHON / name, assets)
    for name in ("page.js", "page.css"):
        shutil.copy(PAGE / name, assets)
    rules = [
        {
            "code": rule.code,
            "name": rule.name,
            "page": f"rules/{stem(rule.name)}.html",
            "on": rule.on,
        }
        for rule in catalogue().rules
    ]
    lock = json.loads((PYTHON / "parts.json").read_text("utf-8"))["lock"]
    for language in WORDS:
        (source / language / "playground.md").write_text(page(language), "utf-8")
        data = {
            "version": __version__,
            "lock": lock,
            "torch": list(table.VERSIONS),
            "examples": list(examples(language)),
            "rules": rules,
        }
        (assets / f"data-{language}.json").write_text(json.dumps(data, ensure_ascii=False), "utf-8")
    digest = hashlib.sha256()
    for path in sorted(assets.iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    worker = (PAGE / "serviceWorker.js").read_text("utf-8").replace("BUILD'", f"{digest.hexdigest()[:16]}'")
    (source / "sw.js").write_text(worker, "utf-8")
