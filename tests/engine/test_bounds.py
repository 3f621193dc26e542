"""What a program makes of texts, numbers and containers is as large as the engine lets it be, and unknown beyond that."""

from __future__ import annotations

import pytest

from gradguard.engine.state import bounds
from gradguard.findings import Certainty
from tests.engine.analysing import analysed, findings
from tests.engine.bounded import MISTAKE, Outcome, checked

pytest.importorskip("resource")

STOPPED = "stopped early: this code needs more steps than the budget allows"
PIECES = "read in part: a tensor is taken apart into more pieces than are followed"

QUIET = {
    "a text doubles": "s = 'x'\n" + "s = s + s\n" * 60,
    "a text is added to itself": "s = b'x'\n" + "s += s\n" * 60,
    "a text is repeated": "s = 'a' * 10**9\nt = 10**9 * b'a'\nu = bytes(10**9)\nv = bytearray(10**9)\n",
    "a text is filled up": "s = 'a'.ljust(10**9)\nt = 'a'.center(10**9)\nu = 'a'.zfill(10**9)\n"
    "v = ('a' * 1000).replace('a', 'b' * 10**6)\nw = ('\\t' * 1000).expandtabs(10**6)\nz = 'a'.join('b' * 10**9)\n",
    "texts are formatted": "s = '%0999999999d' % 1\nt = f'{1:>999999999}'\nu = '{:>999999999}'.format(1)\n"
    "v = format(1, '>999999999')\nw = b'%0999999999d' % 1\nx = f'{s}{s}' + f'{\"a\" * 9000}{\"a\" * 9000}' * 99\n",
    "a power": "s = 2 ** 10**9\nt = 1 << 10**9\nu = 10 ** -10**9\nv = 2.0 ** 10**9\nw = pow(7, 10**9)\n",
    "a number is squared": "n = 10**9\n" + "n = n * n\n" * 60 + "s = str(n)\n",
    "a number is shifted": "n = 3\n" + "n <<= 999\n" * 600 + "m = ~n\nprint(m, -n, +n)\n",
    "a number is raised": "n = 999\n" + "n **= 999\n" * 6,
    "functions of numbers": "import math\ns = math.factorial(10**6)\nt = math.comb(10**6, 10**5)\nu = math.exp(10**6)\n",
    "many digits in text": f"n = 0x{'f' * 20_000}\ns = str(n)\nprint(n, [n])\nt = f'{{n}}'\nu = {{n: n}}\nv = '%d' % n\n"
    "w = '{}'.format(n) + repr(n) + format(n)\nk = int('9' * 5000) + int('f' * 5000, 16) + float('9' * 5000)\n",
    "a number of many digits as a key": f"def f(x, y):\n    n = 0x{'f' * 20_000}\n    x[n] = 1\n    setattr(y, f'a{{x}}', x[n])\n"
    "    if n in x or x == n or x is n:\n        pass\nf(torch.rand(3), f)\nclass A: pass\nsetattr(A, str(2**9999), 1)\n",
    "a number of many digits as a size": "n = 2**4095\nx = torch.zeros(n, n)\ny = x.view(-1, n)\nz = torch.rand(1).expand(n, n)\n"
    "torch.rand(3)[n:]\ntorch.rand(3)[:n:n]\nrange(n)\nlen(range(-n, n))\n[1][n:]\nl = [1]\nl.insert(n, 1)\nl.insert(-n, 2)\ndel l[::0]\n",
    "ranges": "s = list(range(10**9))\nt = [0] * 10**9\nu = (0,) * 10**9\nfor i in range(10**30):\n    s = i\n",
    "products": "import itertools\ns = list(itertools.product(range(10**9), repeat=99))\nt = list(itertools.permutations(range(99)))\n",
    "a dictionary is copied into itself": "d = {0: 0}\n"
    + "d.update({(k, 1): v for k, v in d.items()})\n" * 60,
    "a set is joined with itself": "s = {0}\n" + "s |= {(k, 1) for k in s}\n" * 60,
    "tuples of one tuple": "t = (0, y)\n"
    + "t = (t, t)\n" * 60
    + "u = {t: t}\nu[t]\nt == t\nt in u\nprint(t)\nstr(t)\n",
    "tuples of one tuple in a loop": "t = (y,)\n"
    + "t = (t, t)\n" * 60
    + "for i in range(9):\n    t = (t, t)\n    u = t\n",
    "lists of one list": "t = [0.0, 1.0]\n"
    + "t = [t, t]\n" * 60
    + "x = torch.tensor(t)\nprint(torch.stack(t), str(t), sorted(t))\n",
    "dictionaries of one dictionary": "t = {0: y}\n"
    + "t = {'a': t, 'b': t}\n" * 60
    + "u = {**t}\nt | t\nfor k in t: print(k, t[k])\n",
    "a copy of lists of one list": "import copy\nt = [y]\n"
    + "t = [t, (t, t), {'a': t}]\n" * 60
    + "u = copy.deepcopy(t)\n",
    "classes in tuples of one tuple": "t = (int,)\n"
    + "t = (t, t)\n" * 60
    + "isinstance(3, t)\nissubclass(int, t)\n",
    "an index of tuples of one tuple": "x = torch.rand(3, 3)\nt = (0,)\n"
    + "t = (t, t)\n" * 60
    + "x[t]\nx[t] = 1\nx[0, t]\n",
    "tuples of one tuple go through a hook": "net = torch.nn.Linear(3, 3)\nnet.register_full_backward_hook(print)\nt = (y,)\n"
    + "t = (t, t)\n" * 60
    + "net(t)\n",
    "lists that hold themselves": "import copy\nt = [y]\nt.append(t)\nt.append(t)\nd = {0: t}\nd[1] = d\nu = copy.deepcopy([t, d])\n"
    "print(t, d)\ntorch.stack(t)\ntorch.tensor(t)\nfor i in range(9):\n    t = [t]\n    t.append(t)\nunknown(t, d)\n",
    "tuples inside tuples": "t = (y,)\n"
    + "t = (t,)\n" * 3000
    + "d = {t: t}\nd[t]\nt == t\nprint(t)\ntorch.stack(t)\nunknown(t)\n",
    "keys of unknown values double": "def f(a):\n"
    + "    a = a + a\n" * 60
    + "    for i in range(3):\n        if a > 1:\n            b = 1\n",
    "keys of methods double": "def f(a):\n"
    + "    a = a.of(a, a)[a]\n" * 60
    + "    a[a] = a\n    if a[a]:\n        a = 1\n    return a\n",
    "keys of conditions double": "def f(a, b):\n"
    + "    a = (a, a) < b\n    a = max(a, not a, a)\n    a = abs(a if a else b)\n    a = isinstance(a, (a, a))\n"
    * 60
    + "    setattr(b, a, 1)\n    if a is b or b is a:\n        b = 1\n    return a\n",
    "keys that are made twice": "def f(a):\n"
    + ("    b = a\n" + "    b = b * b\n" * 60 + "    if b > 1: x = 1\n") * 9,
    "keys inside keys": "def f(a):\n"
    + "    a = not a.b\n" * 3000
    + "    if a:\n        a = 1\n    return a\n",
    "closures around closures": "def g(f):\n    return lambda x: f(x)\nh = torch.relu\n"
    + "h = g(h)\n" * 3000
    + "h(y)\n",
    "many turns at once": "import sys\n"
    + "".join(f"if sys.argv[{i}]:\n    y = y + {i}\n" for i in range(1500)),
    "annotations of many brackets": f"def f(x: '{'(' * 190}int{')' * 190}', z: '{'List[' * 5000}int{']' * 5000}'): return x\n",
    "versions of many parts": "from packaging.version import parse\nparse('1.' * 4000 + '1') < parse('9' * 4999)\ntorch.__version__ < '9' * 5000\n",
}
"""Nothing is said of these: what is too large is a value like any other that is not known."""

SAID = {
    "a list doubles": ("s = [y]\n" + "s = s + s\n" * 60, {bounds.CUT, STOPPED}),
    "a list is added to itself": ("s = [y]\n" + "s += s\n" * 60, {bounds.CUT, STOPPED}),
    "a tuple doubles": ("s = (y,)\n" + "s = s + s\n" * 60, {bounds.CUT, STOPPED}),
    "stars double": ("s = (y,)\n" + "s = (*s, *s)\n" * 60, {bounds.CUT, STOPPED}),
    "arguments double": ("def g(*a): return a\ns = (y,)\n" + "s = g(*s, *s)\n" * 60, {bounds.CUT, STOPPED}),
    "a sum of lists": ("s = [[y]]\n" + "s = s + s\n" * 8 + "t = sum(s, [])\n" + "t = sum([t] * 8, [])\n" * 20, {STOPPED}),
    "named arguments pile up": ("def g(**a): return a\nd = {}\n" + "".join(f"d = g(a{i}=1, **d)\n" for i in range(2000)), {STOPPED}),
    "comprehensions": ("s = [[[[[0 for a in range(99)] for b in range(99)] for c in range(99)] for d in range(99)] for e in range(99)]\n", {STOPPED}),
    "copies of a table": (f"d = {{{', '.join(f'{i}: {i}' for i in range(9000))}}}\n" + "l = [{**d}, dict(d), d.copy(), d | d]\n" * 900, {STOPPED}),
    "copies of a list": (f"d = [{'0, ' * 30_000}]\nl = []\n" + "l += [d[:], d.copy(), d + [1]]\n" * 900, {STOPPED}),
    "long texts pile up": ("l = []\ns = 'a' * 9000\n" + "l.append(s + 'b')\n" * 9000, {STOPPED}),
    "a long list goes from hand to hand": (f"d = [{'0, ' * 90_000}]\nfor i in range(9):\n" + "    a = d\n" * 900, {STOPPED}),
    "tuples around tuples go from hand to hand": ("t = ()\n" + "t = (t, 1)\n" * 6000 + "unknown(t)\n" * 6000, {STOPPED}),
    "a million pieces": ("x = torch.rand(1_250_000)\na = x.split(1)\nb = x.chunk(10**9)\nc = x.tensor_split(10**9)\n*d, = x\nf(*x)\nlist(x)\n", {PIECES}),
    "pieces of listed sizes": ("x = torch.rand(3, 999)\na = x.split([1, 2] + [3] * 7 + list(range(9)) * 99, 1)\nb = x.unbind(1)\nc = x.split(1, 1)\n", {PIECES}),
    "a copy of what is nested": ("import copy\nt = [y]\n" + "t = [t]\n" * 3000 + "copy.deepcopy(t)\n", {bounds.NESTED}),
    "calls that double": ("def f0(x): return x\n" + "".join(f"def f{i}(x): return f{i - 1}(x) + f{i - 1}(x)\n" for i in range(1, 12)) + "".join(f"f{i}(y)\n" * 99 for i in range(12)), {STOPPED}),
}  # fmt: skip
"""The report says that something was cut off."""

TEXTS = {name: f"import torch\n{MISTAKE}{text}{MISTAKE}" for name, text in QUIET.items()}
TEXTS |= {name: f"import torch\n{MISTAKE}{text}{MISTAKE}" for name, (text, _) in SAID.items()}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    """What was said of all of them."""
    return checked(TEXTS)


def last(name: str) -> int:
    """The line of the write at the end of a program."""
    return TEXTS[name].count("\n") - 1


@pytest.mark.parametrize("name", QUIET)
def test_what_grows_is_unknown_and_the_rest_is_read(name: str, outcomes: dict[str, Outcome]) -> None:
    found = outcomes[name]
    assert (found.limits, found.crash) == ((), "")
    assert found.told(3)
    assert found.told(last(name))


@pytest.mark.parametrize("name", SAID)
def test_what_is_cut_off_is_said(name: str, outcomes: dict[str, Outcome]) -> None:
    found = outcomes[name]
    assert (set(found.limits), found.crash) == (SAID[name][1], "")
    assert found.told(3) or STOPPED in found.limits
    assert found.told(last(name)) is (STOPPED not in found.limits)


def certainties(condition: str, before: str = "") -> list[Certainty]:
    """How sure a mistake is that is made where a condition holds."""
    return [
        each.certainty
        for each in findings(
            f"import torch\n{before}y = torch.rand(3, requires_grad=True).exp()\n"
            f"if {condition}:\n    y += 1\ny.sum().backward()\n"
        )
    ]


@pytest.mark.parametrize(
    "known",
    [
        "'ab' * 3 == 'ababab'",
        "2 * b'ab' == b'abab'",
        "f'{7 ** 70}' == str(7 ** 70)",
        "2 ** 4000 > 1 << 3999",
        "len('a' * 9999 + 'b') == 10_000",
        "('a,' * 3).split(',')[3] == ''",
        "len([1] * 4 + [2]) == 5",
        "10 ** -2 < 1 and (-1) ** (10 ** 9) == 1 and ~5 == -6",
        "(1, (2, 3))[1][0] + 1 == 3",
        "5 in [1, 5] and 'b' in 'abc'",
    ],
)
def test_what_is_small_is_computed(known: str) -> None:
    assert certainties(known) == [Certainty.CERTAIN]


@pytest.mark.parametrize(
    "unknown",
    [
        "'ab' * 10 ** 6 == 'c'",
        "len('a' * 99_999) == 3",
        "7 ** 10 ** 6 < 3",
        "(1 << 5000) + 1 == 3",
        "str(1 << 5000) == '3'",
        "f'{1 << 5000}' == '3'",
        f"0x{'f' * 2000} == 3",
        f"'{'x' * 20_000}' == 'y'",
        "2 ** 9999 % 2 == 1",
    ],
)
def test_what_is_too_large_is_unknown_and_not_empty(unknown: str) -> None:
    assert certainties(unknown) == [Certainty.LIKELY]


GROWN = "rows = [torch.rand(3, requires_grad=True).exp()]\n" + "rows = rows + rows\n" * 17


def test_what_is_cut_off_a_list_may_require_grad() -> None:
    """The list is too long, and is not taken for one whose tensors are all seen."""
    told = findings(f"import torch\n{GROWN}loss = rows[-1].sum()\nloss.backward()\n")
    assert [each.code for each in told] == []


def test_what_is_cut_off_a_list_is_written_by_nobody_for_certain() -> None:
    told = findings(f"import torch\n{GROWN}rows[-1] += 1\nrows[0].sum().backward()\n")
    assert [each for each in told if each.certainty is Certainty.CERTAIN] == []


def test_equal_tuples_are_one_key() -> None:
    assert certainties("{(1, ('a', 2)): 3}[1, ('a', 2)] == 3") == [Certainty.CERTAIN]


def test_what_stands_in_the_program_is_as_long_as_its_text() -> None:
    table = ", ".join(map(str, range(bounds.MAX_ITEMS + 100)))
    text = f"table = [{table}]\n"
    assert certainties(f"table[-1] == {bounds.MAX_ITEMS + 99} and len(table) > 7", text) == [
        Certainty.CERTAIN
    ]
    assert not analysed(f"import torch\n{text}").limits
