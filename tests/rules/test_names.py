"""Names of the program are shortened in what is said, and whole in what a fix works with."""

from __future__ import annotations

from gradguard.check.api import check
from gradguard.check.settings import Settings
from gradguard.source.text import Source


def test_a_name_that_is_very_long_leaves_room_for_the_rest() -> None:
    name = "a" * 5000
    text = f"import torch\n{name} = torch.rand(3, requires_grad=True).exp()\n{name} += 1\n{name}.sum().backward()\n"
    (found,) = check(Source("train.py", text), Settings()).findings
    assert len(found.message) < 200
    assert all(len(plan.title) < 200 for plan in found.fixes)
    assert all(len(each.message) < 200 for each in found.related)
    assert any(dict(plan.data).get("name") == name for plan in found.fixes)
    assert "a…`" in found.message
