"""The drawn pictures of the pages, whose words are translated where a page is."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "assets"
TEXT = re.compile(r"(<text [^>]*>)([^<]*)(</text>)")
KOREAN = {
    "storage of y": "y의 저장소",
    "version 0": "버전 0",
    "version 1: it was written": "버전 1: 값이 쓰였다",
    "node: sigmoid": "노드: sigmoid",
    "keeps y at version 0": "버전 0의 y를 간직",
    "kept": "간직",
    "backward arrives": "backward가 도착",
    "kept 0, found 1: refuses": "기대 0, 지금 1: 거부",
    "The message comes from the right, the mistake is in the middle, and anomaly mode points to the left.": "메시지는 오른쪽에서 "
    "나오고, 실수는 가운데에 있고, anomaly mode는 왼쪽을 가리킵니다.",
    "first pass": "첫 번째 반복",
    "second pass": "두 번째 반복",
    "state 1, graph 1": "상태 1, 그래프 1",
    "graph 1 is freed": "그래프 1이 해제됨",
    "state 2 stands on graph 1": "상태 2는 그래프 1 위에",
    "graph 1 again: raises": "다시 그래프 1: 오류",
    "carried over": "넘어감",
    "One pass shows what happens in a pass. The second meets what the first has left behind: a rule needs no third.": "한 번은 반복 "
    "안에서 일어나는 일을 보여 주고, 두 번째는 첫 번째가 남긴 것을 만납니다. 세 번째는 필요 없습니다.",
}


def names() -> list[str]:
    """The files of the pictures."""
    return sorted(path.name for path in FOLDER.glob("*.svg"))


def drawn(name: str, language: str) -> str:
    """A picture. Its lines of code stay as they are. Raises KeyError for words without a translation."""
    text = (FOLDER / name).read_text("utf-8")
    if language == "en":
        return text

    def translate(match: re.Match[str]) -> str:
        opening, words, closing = match.groups()
        return match.group(0) if 'class="code"' in opening else f"{opening}{KOREAN[words]}{closing}"

    return TEXT.sub(translate, text)
