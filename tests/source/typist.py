"""Random editing that leaves a text unparsable for long stretches, as typing, pasting and deleting do."""

from __future__ import annotations

import random

WORDS = [
    "(", ")", "[", "{", '"', '"""', "'", "#", ":", "\\", "\n", "    ", "x", "é😋", ",", "@d\n", "else:\n", "f'{", "}'",
    "y.add_(1)\n", "def f(x):\n", "x = (\n", "class A:\n    x = (1\n    def g(self):\n        return 1\n", "\x0c",
    "\ufeff", "\u2028", "\r\n",
]  # fmt: skip
KEPT = 40


class Typist:
    """Edits of one text. After an undo all the way the text is the first one again."""

    def __init__(self, text: str, chance: random.Random, words: list[str] = WORDS) -> None:
        self.text, self.chance, self.words = text, chance, words
        self._first, self._past = text, [text]

    def edited(self) -> str:
        """The text after one more edit."""
        text, chance, kind = self.text, self.chance, self.chance.random()
        at = chance.randrange(len(text) + 1)
        if kind < 0.03:
            self._past = []
            self.text = self._first
            return self.text
        if kind < 0.45:
            new = text[:at] + chance.choice(self.words) + text[at:]
        elif kind < 0.6:
            new = text[:at] + text[at + chance.randrange(1, 40) :]
        elif kind < 0.7:
            lines = text.split("\n")
            first = chance.randrange(len(lines))
            del lines[first : first + chance.randrange(1, 4)]
            new = "\n".join(lines)
        elif kind < 0.8:
            source = chance.randrange(len(text) + 1)
            new = text[:at] + text[source : source + 120] + text[at:]
        else:
            self.text = self._past.pop() if self._past else self._first
            return self.text
        self._past = [*self._past[-KEPT:], text]
        self.text = new
        return new
