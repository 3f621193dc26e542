"""A fix changes what it is about and no other byte, whatever the file looks like around it."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from gradguard.check.api import check
from gradguard.check.settings import Settings
from gradguard.fixes.api import edits
from gradguard.fixes.edit import applied
from gradguard.source.text import Source
from tests.fixes.test_fixtures import CASES, MARK, expected, ident, made, read

JUNK = (
    "junk_a = 'y.add_(1)'  # y += 1\n",
    'junk_b = """\ny.add_(1); y += 1\n\ttab \\\n  """\n',
    "junk_c = 1 + \\\n      2\n",
    "\f\n",
    "junk_d = 0\nif junk_d: junk_d = \"it's\"; junk_e = 'a\"b'\n",
    "with open(__file__) as junk_f: pass\n",
    "@staticmethod\ndef junk_g(a, *, b=('😀', \"é\")):\n    def deeper(): return a;\n\n    return deeper  # ünïcode\n",
    "junk_h = {'y': 1,\n      'z': 2}   \n",
    "class JunkI: a = 1; b = 2\n",
    "junk_j = lambda q: (q,\n  q)  # 漢字\n",
    "junk_k = rb'\\d' b\"x\"; junk_l = f'{junk_k!r:>{10}}'\n",
    "   \n\n\t\n",
    "junk_m = 'a\u2028b\x0bc'\n",
)
"""What stands in files and is nobody's business. Every line end is one that Python knows."""


def surrounded(text: str, rng: random.Random) -> tuple[str, str]:
    """What to put behind the imports of a program, and at its end."""
    middle, end = ("".join(rng.choices(JUNK, k=4)) for _ in range(2))
    return middle, end


def with_junk(text: str, middle: str, end: str) -> str:
    """The text with junk behind its first `import torch`, and at its end."""
    found = re.search(r"^import torch\b.*\n", text, re.MULTILINE)
    at = found.end() if found else 0
    tail = "" if text.endswith("\n") else "\n"
    return text[:at] + (middle if found else "") + text[at:] + tail + end


def tabbed(text: str) -> str:
    """Indentation by tabs."""
    return re.sub(r"^( {4})+", lambda spaces: "\t" * (len(spaces[0]) // 4), text, flags=re.MULTILINE)


def windows(text: str) -> str:
    """Every line end as Windows has it."""
    return re.sub(r"\r?\n", "\r\n", text)


@pytest.mark.parametrize("path", CASES, ids=ident)
def test_everything_around_it_stays(path: Path) -> None:
    text, wanted = read(path), expected(path)
    rng = random.Random(str(path.relative_to(path.parents[1])))
    middle, end = surrounded(text, rng)
    if not re.search(r"^import torch\b", text, re.MULTILINE):
        middle = ""
    if path.parent.name == "no-grad-rest":
        end = ""  # would be part of what it is about
    text, wanted = with_junk(text, middle, end), with_junk(wanted, middle, end)
    styles = [windows] if rng.random() < 0.5 else []
    if is_plain(read(path)) and "\n    " in read(path) and rng.random() < 0.5:
        styles.append(tabbed)
    for style in styles:
        text, wanted = style(text), style(wanted)
    if rng.random() < 0.3:
        text, wanted = MARK + text, MARK + wanted
    assert made(text, path.parent.name) == wanted


def is_plain(text: str) -> bool:
    """Whether every line is indented by blocks alone, so that tabs may take the place of spaces."""
    if '"""' in text or "\t" in text:
        return False
    depth = 0
    for line in text.splitlines():
        spaces = len(line) - len(line.lstrip(" "))
        if line.strip() and (spaces % 4 or spaces > depth + 4):
            return False
        depth = spaces if line.strip() else depth
    return not re.search(r"[\[({]\s*(#.*)?$|\\$", text, re.MULTILINE)


@pytest.mark.parametrize("path", CASES, ids=ident)
def test_no_line_end_is_added(path: Path) -> None:
    text, wanted = read(path), expected(path)
    assert made(text.rstrip("\r\n"), path.parent.name) == wanted.rstrip("\r\n")


HEAD = "import torch\nimport torch.nn.functional as F\nx = torch.rand(3, requires_grad=True)\n"
LINES = {
    "y = x.exp()\nif True: y.add_(1)\ny.sum().backward()": "if True: y = y.add(1)",
    "y = x.exp()\nif True: s = 1; y.relu_() ; t = 2\ny.sum().backward()": "if True: s = 1; y = y.relu() ; t = 2",
    "y = x.exp()\nwith torch.enable_grad(): y += 1; y\ny.sum().backward()": "with torch.enable_grad(): y = y + 1; y",
    "y = x.exp()\nfor _ in range(1): y *= 2   # twice\ny.sum().backward()": "for _ in range(1): y = y * 2   # twice",
    "y = x.exp()\ns = '😀'; y.add_(1); t = \"é\"\ny.sum().backward()": "s = '😀'; y = y.add(1); t = \"é\"",
    "y = x.exp()\ny.add_(  1,\n    alpha = 2 )\ny.sum().backward()": "y = y.add(  1,\n    alpha = 2 )",
    "y = x.exp()\ny  +=  1 \\\n    + 2\ny.sum().backward()": "y  =  y + (1 \\\n    + 2)",
    "y = x.exp()\ny.add_(1) ; 'y.add_(1)'\ny.sum().backward()": "y = y.add(1) ; 'y.add_(1)'",
    "y = x.exp()\n\x0cy.add_(1)\ny.sum().backward()": "\x0cy = y.add(1)",
    "y = x.exp(); y.add_(1); y.sum().backward()": "y = x.exp(); y = y.add(1); y.sum().backward()",
    "y = x.exp()\nif False: pass\nelse: y.add_(1)\ny.sum().backward()": "else: y = y.add(1)",
    "y = x.exp()\ntry: y.add_(1)\nfinally: pass\ny.sum().backward()": "try: y = y.add(1)",
    "def f(a):\n  def g(b):\n    z = b.exp()\n    z.add_(1)  # ünï\n    return z\n  return g(a)\nf(x).sum().backward()": "    z = z.add(1)  # ünï",
    "class C:\n\tdef f(self, b):\n\t\tz = b.exp(); z += 1\n\t\treturn z\nC().f(x).sum().backward()": "\t\tz = b.exp(); z = z + 1",
    "y = x.exp()\nif True:\n  y[0] = 1\ny.sum().backward()": "  y = y.clone()\n  y[0] = 1",
    "y = x.exp()\nif True: y[0] = 1\ny.sum().backward()": "if True: y = y.clone(); y[0] = 1",
    "y = x.exp()\nz = F.relu(y , inplace = True)  # both\n(y + z).sum().backward()": "y = z = F.relu(y)  # both",
}  # fmt: skip
"""A program with one write, and what becomes of the lines it stands on."""


def fixed_once(text: str) -> str:
    """The text after the first fix of its first finding."""
    source = Source("program.py", text)
    plan = check(source, Settings()).findings[0].fixes[0]
    return applied(source, edits(plan, source) or ())


@pytest.mark.parametrize("body", LINES, ids=range(len(LINES)))
@pytest.mark.parametrize("ending", ["", "\n"])
def test_the_line_itself(body: str, ending: str) -> None:
    text = HEAD + body + ending
    after = fixed_once(text)
    lead = next(i for i, (a, b) in enumerate(zip(text, after)) if a != b)
    start = text.rindex("\n", 0, lead) + 1
    tail = text[::-1].index("\n", len(ending)) + 1 if "\n" in body[body.index("exp()") :] else len(ending)
    assert after[:start] == text[:start]
    assert after.endswith(text[len(text) - tail :])
    assert LINES[body] in after
    assert after.count("\n") - text.count("\n") == LINES[body].count("\n") - written(body).count("\n")


def written(body: str) -> str:
    """The lines of a program that its fix changes."""
    changed = "y.add_(  1,\n" in body or "\\\n" in body
    return "\n" if changed else ""
