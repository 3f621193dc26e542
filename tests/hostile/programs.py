"""Programs that grow: values that double, structure that is shared, numbers and texts without end.

Each ends with a function in which torch raises, so that what the growth hides is noticed.
"""

from __future__ import annotations

import random

MISTAKE = """\
import torch


def mistake():
    x = torch.randn(3, requires_grad=True)
    y = x.exp()
    y.add_(1)
    y.sum().backward()


mistake()
"""

DOUBLED = (
    ("'ab'", "v = v + v"), ("'ab'", "v *= 2"), ("'ab'", "v = f'{v}{v}'"), ("'ab'", "v = '%s%s' % (v, v)"),
    ("'ab'", "v = '{}{}'.format(v, v)"), ("'ab'", "v = v.join([v, v, v])"), ("'ab'", "v = v.replace('a', v)"),
    ("'ab'", "v = ''.join([v, v])"), ("'ab'", "v = repr(v) + repr(v)"), ("b'ab'", "v = v + v"), ("b'ab'", "v = v * 3"),
    ("[1]", "v = v + v"), ("[1]", "v = [*v, *v]"), ("[1]", "v.extend(v)"), ("[1]", "v = sum([v, v], [])"),
    ("[1]", "v = [v, v]"), ("[1]", "v = [x for x in v for _ in (0, 1)]"), ("[1]", "v += v"), ("[1]", "v = list(v) * 2"),
    ("(1,)", "v = v + v"), ("(1,)", "v = (v, v)"), ("(1,)", "v = (*v, *v)"), ("(1,)", "v = tuple(v) * 2"),
    ("(1,)", "v = (v, (v, v))"), ("(1,)", "v = {'a': v, 'b': v}"), ("{0: 1}", "v = {0: v, 1: v}"),
    ("{0}", "v = {(x, y) for x in v for y in (0, 1)}"), ("{0: 1}", "v = {**v, **{k + len(v): 1 for k in v}}"),
    ("3", "v = v * v"), ("3", "v = v ** v"), ("3", "v = v << v"), ("3", "v = int(str(v) * 2)"), ("3", "v = v ** 9"),
    ("range(3)", "v = list(v) + list(v)"), ("lambda t: t", "v = (lambda f: lambda t: f(f(t)))(v)"),
    ("torch.zeros(2)", "v = torch.cat([v, v])"), ("torch.zeros(2, 2)", "v = torch.stack([v, v])"),
    ("torch.zeros(2)", "v = v.unsqueeze(0).expand(2, *v.shape)"), ("torch.zeros(2, requires_grad=True)", "v = v + v"),
    ("torch.zeros(2, requires_grad=True)", "v = torch.stack([v * v, v]).sum(0)"),
    ("torch.zeros(2, requires_grad=True)", "v = torch.autograd.grad((v * v).sum(), v, create_graph=True)[0]"),
)  # fmt: skip
"""A value and what is done to it again and again."""

HUGE = (
    "v = 'a' * 10 ** 10", "v = [0] * 10 ** 10", "v = (0,) * 10 ** 10", "v = b'a' * 10 ** 10", "v = bytes(10 ** 10)",
    "v = list(range(10 ** 10))", "v = tuple(range(10 ** 10))", "v = sum(range(10 ** 10))", "v = set(range(10 ** 10))",
    "v = 10 ** 10 ** 7", "v = 1 << 10 ** 9", "v = 2 ** 100_000_000", "v = str(10 ** 100_000)", "v = f'{10 ** 100_000}'",
    "v = '%d' % 10 ** 100_000", "v = int('9' * 100_000)", "v = f'{1:>9999999999}'", "v = '%9999999999d' % 1",
    "v = 'a'.ljust(10 ** 10)", "v = '1'.zfill(10 ** 10)", "v = '\\t'.expandtabs(10 ** 10)", "v = 'a'.center(10 ** 10)",
    "v = {n: n for n in range(10 ** 10)}", "v = [n for n in range(10 ** 10)]", "v = [0 for a in range(10 ** 5) for b in range(10 ** 5)]",
    "import math; v = math.factorial(10 ** 7)", "import math; v = math.comb(10 ** 8, 10 ** 7)", "v = pow(3, 10 ** 9)",
    "import itertools; v = list(itertools.product(range(99), repeat=9))", "v = torch.zeros(10 ** 5, 10 ** 5).t()[::2, ::3]",
    "import itertools; v = list(itertools.permutations(range(20)))", "v = torch.arange(1_250_000).view(50, -1).unbind(1)",
    "v = torch.zeros(1_250_000)\nfor i in range(1_250_000): v[i] = i", "v = list(torch.zeros(10 ** 9))", "v = complex(10 ** 400)",
    "v = float(10 ** 400)", "v = round(10 ** 400 / 3)", "v = hash(10 ** 10 ** 6)", "v = [[]] * 10 ** 9", "v = 'x'.join(['y'] * 10 ** 9)",
    "v = torch.zeros(3)\nfor _ in range(1_500): v = v.view(3).unsqueeze(0).squeeze(0)", "v = eval('9' * 10 ** 6)",
    "def f(n): return f(n - 1) + f(n - 2)\nv = f(60)", "def f(n):\n    return f(n + 1)\nv = f(0)", "v = []\nv.append(v)\nv = [v, *v, (v,)]",
    "v = ()\nfor _ in range(20_000): v = (v,)", "v = None\nfor _ in range(20_000): v = {'next': v}", "v = 1\nwhile True: v += 1",
    "class A:\n    def __getattr__(self, name): return getattr(self, name)\nv = A().x", "class A:\n    def __add__(self, o): return self + o\nv = A() + A()",
)  # fmt: skip


def growing(choose: random.Random) -> str:
    """A program of one random kind of growth, followed by the mistake."""
    kind = choose.randrange(6)
    if kind < 3:
        start, step = choose.choice(DOUBLED)
        times = choose.choice((30, 60, 200))
        if choose.random() < 0.5:
            body = f"v = {start}\n" + f"{step}\n" * min(times, 60)
        else:
            body = f"v = {start}\nfor _ in range({times}):\n    {step}\n"
        body += choose.choice(
            ("", "print(v)\n", "w = str(v)\n", "x = {v: 1}\n", "assert v == v\n", "print(f'{v!r}')\n")
        )
    elif kind < 5:
        body = choose.choice(HUGE) + "\n"
    else:
        width = choose.randrange(15, 40)
        body = "def g0(x): return x + 1\n" + "".join(
            f"def g{n}(x): return g{n - 1}(x) + g{n - 1}(x * 2)\n" for n in range(1, width)
        )
        body += f"v = g{width - 1}(torch.zeros(2, requires_grad=True))\n"
    if choose.random() < 0.4:
        body = (
            "def grows():\n"
            + "".join(f"    {line}\n" for line in body.splitlines())
            + "    return v\n\n\ngrows()\n"
        )
    head, _, rest = MISTAKE.partition("\n")
    return f"{head}\n\n{body}{rest}"
