"""The cells of the table of operations in Korean.

Their English is made of few phrases (`gradguard.ops.wording`, `gradguard.ops.listing`), which are read here and said
again. A phrase that is not known raises ValueError, so that no new one stays English unseen.
"""

from __future__ import annotations

import re

NAME = r"`[^`]*`"
ROLE = r"(?:`[^`=!]*`|a parameter of it)"  # a bare comparison in backquotes is a condition of its own
LABEL = re.compile(r"(\([^()]*\))(?: ((?:if|sometimes) [^(:]*?))?(, (?=\()|: )")
AND, OR, WHEN = range(3)

# How a condition ends before "and", before "or", and before what it is about.
BE = ("이고", "이거나", "일 때")
DO = ("하고", "하거나", "할 때")
BECOME = ("되고", "되거나", "될 때")
EXIST = ("있고", "있거나", "있을 때")
NOT = ("아니고", "아니거나", "아닐 때")
SAME = ("같고", "같거나", "같을 때")
NEED_NO = ("필요하지 않고", "필요하지 않거나", "필요하지 않을 때")
WORDS = {
    "a parameter of it": "매개변수",
    "of integers": "정수",
    "of bools": "불리언",
    "floating": "실수",
    "complex": "복소수",
}
KIND = "(of integers|of bools|floating|complex)"
ATOMS = [
    (re.compile(pattern), template, ending)
    for pattern, template, ending in (
        (rf"({ROLE}(?:(?:, | or ){ROLE})*) requires grad", "{0}의 기울기가 필요", DO),
        (rf"({NAME}) does not require grad", "{0}의 기울기가 ", NEED_NO),
        (rf"every other tensor of ({NAME}) requires grad", "{0}의 다른 모든 텐서에 기울기가 필요", DO),
        (rf"another tensor of ({NAME}) requires grad", "{0}의 다른 텐서에 기울기가 필요", DO),
        (rf"no other tensor of ({NAME}) requires grad", "{0}의 다른 어떤 텐서에도 기울기가 ", NEED_NO),
        (
            rf"not every other tensor of ({NAME}) requires grad",
            "{0}의 다른 텐서 가운데 일부에 기울기가 ",
            NEED_NO,
        ),
        (rf"({NAME}) is of dtype ({NAME})", "{0}의 dtype이 {1}", BE),
        (rf"({NAME}) is not of dtype ({NAME})", "{0}의 dtype이 {1}이(가) ", NOT),
        (rf"({NAME}) has no dimension", "{0}의 차원 수가 0", BE),
        (rf"({NAME}) has a dimension", "{0}에 차원이 ", EXIST),
        (rf"({NAME}) has (\d+) dimensions?", "{0}의 차원 수가 {1}", BE),
        (rf"({NAME}) has not (\d+) dimensions?", "{0}의 차원 수가 {1}이 ", NOT),
        (rf"({NAME}) is contiguous", "{0}의 메모리가 연속", BE),
        (rf"({NAME}) is not contiguous", "{0}의 메모리가 연속이 ", NOT),
        (rf"({NAME}) is {KIND}", "{0}의 자료형이 {1}", BE),
        (rf"({NAME}) is not {KIND}", "{0}의 자료형이 {1}이(가) ", NOT),
        (rf"({NAME}) is given", "{0} 값이 지정", BECOME),
        (rf"({NAME}) is not given", "{0} 값이 생략", BECOME),
        ("it is contiguous", "메모리가 연속", BE),
        ("the (dtype) is the same", "{0}이 ", SAME),
        ("the device is the same", "장치가 ", SAME),
        ("the shape is the same", "모양이 ", SAME),
        ("the new shape needs no copy", "새 모양에 복사가 ", NEED_NO),
        (rf"({NAME})", "{0}", BE),
    )
]
UNSURE = " (shapes or values decide)"
NOTES = {
    ", several of its elements may be one place in memory": "원소 여러 개가 메모리의 한 곳일 수 있음",
    ", one of several views: writing one in place is refused while a gradient is recorded": "여러 뷰 가운데 하나, "
    "기울기를 기록하는 동안 제자리 쓰기가 거부됨",
    UNSURE: "모양이나 값에 따라 다름",
}
WHATS = [
    (re.compile(pattern), template)
    for pattern, template in (
        ("yes", "예"),
        (rf"({NAME}) is ({NAME}) itself", "{0}: {1} 그 자체"),
        (rf"({NAME}) shares memory with ({NAME})", "{0}: {1}의 메모리를 공유"),
        (rf"({NAME}(?:, {NAME})*)", "{0}"),
        (rf"((?:{NAME}, )*)(\d+) parameters \(([^)]*?) of every layer\)", "{0}매개변수 {1}개(층마다 {2})"),
        (rf"((?:{NAME}, )*)(\d+) parameters \(([^)]*?)\)", "{0}매개변수 {1}개({2})"),
    )
]


def korean(cell: str) -> str:
    """A cell of what is saved, shared, written or read. Raises ValueError for a phrase that is not known."""
    return "; ".join(_item(part) for part in cell.split("; ")) if cell else ""


def _item(text: str) -> str:
    """`(input, dim) if this: what`: the arguments that tell one form from another stand first."""
    labels = ""
    while match := LABEL.match(text):
        arguments, condition, end = match.groups()
        labels += f"{arguments} {_condition(condition)}{end}" if condition else arguments + end
        text = text[match.end() :]
    notes = []
    for note, said in NOTES.items():
        if note in text:
            text = text.replace(note, "")
            notes.append(said)
    what, condition = re.fullmatch(r"(.*?)(?: ((?:if|sometimes)(?: .*)?))?", text).groups()  # type: ignore[union-attr]
    said = _what(what)
    if condition:
        said = f"{_condition(condition)} {said}"
    return labels + said + (f" ({', '.join(notes)})" if notes else "")


def _what(text: str) -> str:
    counted = text.removesuffix(" (not counted)")
    for pattern, template in WHATS:
        if match := pattern.fullmatch(counted):
            return template.format(*match.groups()) + ("" if counted == text else " (버전에 세지 않음)")
    raise ValueError(f"no Korean for what is told: {text}")


def _condition(text: str) -> str:
    """`if a and b or sometimes if c`, ending before what it is about."""
    at = 0
    said: list[str] = []
    while at < len(text):
        opening = re.compile(r"sometimes if |sometimes|if |").match(text, at)
        assert opening is not None
        at = opening.end()
        if opening.group().startswith("sometimes"):
            said.append("때에 따라")
        if opening.group() != "sometimes":
            template, ending, at = _atom(text, at)
            joint = AND if text.startswith(" and ", at) else OR if text.startswith(" or ", at) else WHEN
            said.append(template + ending[joint])
        joined = re.compile(r" (?:and|or) |$").match(text, at)
        if joined is None:
            raise ValueError(f"no Korean for the rest of a condition: {text[at:]}")
        at = joined.end()
    return " ".join(said)


def _atom(text: str, at: int) -> tuple[str, tuple[str, str, str], int]:
    """The condition that starts at a place, how it ends, and where it ended."""
    for pattern, template, ending in ATOMS:
        match = pattern.match(text, at)
        if match and re.compile(r" (?:and|or) |$").match(text, match.end()):
            words = [_words(group) for group in match.groups()]
            return template.format(*words), ending, match.end()
    raise ValueError(f"no Korean for a condition: {text[at:]}")


def _words(text: str) -> str:
    for english, said in WORDS.items():
        text = text.replace(english, said)
    return text.replace(" or ", " 또는 ")
