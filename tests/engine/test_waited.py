"""A block that waits for torch to raise reports nothing of what raises there; torch raises, or the block would."""

from __future__ import annotations

import pytest

from gradguard.check.api import check
from gradguard.check.settings import Settings
from gradguard.source.text import Source

HEAD = "import unittest\nimport pytest\nimport torch\n\nroot = torch.rand(3, requires_grad=True).exp()\nroot.add_(1)\n"
BLOCKS = {
    "with": "with pytest.raises(RuntimeError, match='modified by an inplace operation'):\n    root.sum().backward()\n",
    "method": (
        "class Case(unittest.TestCase):\n    def test(self):\n        root = torch.rand(3, requires_grad=True).exp()\n"
        "        root.add_(1)\n        with self.assertRaises(RuntimeError):\n            root.sum().backward()\n\n\n"
        "Case('test').debug()\n"
    ),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_an_error_waited_for(name: str) -> None:
    text = HEAD + BLOCKS[name]
    exec(compile(text, "program.py", "exec"), {"__name__": "__main__"})
    assert check(Source("program.py", text), Settings()).findings == ()


def test_without_the_block_it_is_told() -> None:
    found = check(Source("program.py", HEAD + "root.sum().backward()\n"), Settings()).findings
    assert [one.code for one in found] == ["GG101"]
