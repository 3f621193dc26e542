"""Programs whose analysis could grow without bound: solvers, inner loops, graphs of graphs, everything with everything.

Each is of a kind that people write, with its numbers raised. None may take more than 2 CPU seconds and 300 MB:
`python -m benchmarks --only bounds` measures that, `tests/engine/test_growing.py` counts what they take.
"""

from __future__ import annotations

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"
MAML = """\
def adapt(model, x, y, lr):
    fast = [p for p in model.parameters()]
    for step in range({steps}):
        loss = F.mse_loss(F.linear(torch.relu(F.linear(x, fast[0], fast[1])), fast[2], fast[3]), y)
        grads = torch.autograd.grad(loss, fast, create_graph=True)
        fast = [w - lr * g for w, g in zip(fast, grads)]
    return fast


def main(tasks):
    model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters())
    for x, y, x_query, y_query in tasks:
        optimizer.zero_grad()
        fast = adapt(model, x, y, 0.1)
        loss = F.mse_loss(F.linear(torch.relu(F.linear(x_query, fast[0], fast[1])), fast[2], fast[3]), y_query)
        loss.backward()
        optimizer.step()


main(load())
"""
SOLVER = """\
def solve(apply, b, iterations={steps}, tol=1e-10):
    x = torch.zeros_like(b)
    r = b - apply(x)
    p = r.clone()
    rs = torch.dot(r, r)
    for step in range(iterations):
        ap = apply(p)
        alpha = rs / torch.dot(p, ap)
        x = x + alpha * p
        r = r - alpha * ap
        new = torch.dot(r, r)
        if new < tol:
            break
        p = r + (new / rs) * p
        rs = new
    return x


solution = solve(operator, right_hand_side())
solution.sum().backward()
"""
TRAINER = """\
class Net{0}(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.last = nn.Linear(width, 1)

    def forward(self, x, mask=None):
        hidden = torch.relu(self.first(x))
        if mask is not None:
            hidden = hidden * mask
        hidden = self.norm(hidden + x)
        return self.last(hidden).squeeze(-1)


def train{0}(loader, epochs=3, device="cuda"):
    model = Net{0}().to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(epochs):
        total = 0.0
        for step, (x, y) in enumerate(loader):
            loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 100 == 0:
                total += loss.item()
        print(epoch, total)
    return model


"""
"""A model and its training loop, for files of any length."""


LEAF = "x = torch.rand(8, 8, requires_grad=True)\n"


def _many(count: int, line: str) -> str:
    """A line again and again, with its number `{0}` and the next `{1}`."""
    return "".join(line.format(n, n + 1) + "\n" for n in range(count))


def _nest(heads: list[str], body: str) -> str:
    """Blocks inside blocks around a body."""
    indent = "    " * len(heads)
    lines = ["    " * n + head for n, head in enumerate(heads)]
    return "\n".join([*lines, *(indent + line for line in body.splitlines())]) + "\n"


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


NESTS = [head.format(n) for n in range(9) for head in ("for i{0} in rows{0}:", "if i{0} > args.limit{0}:")]
WHILES = [f"while state.more({n}):" for n in range(9)]

PROGRAMS = {
    **{f"MAML, {steps} inner steps": MAML.format(steps=steps) for steps in (5, 15, 100)},
    "conjugate gradient, 12 steps": SOLVER.format(steps=12),
    "conjugate gradient, 200 steps": SOLVER.format(steps=200),
    "22 functions that each call the one before twice": "def f0(v): return v.exp()\n"
    + _many(22, "def f{1}(v): return f{0}(v) + f{0}(v * 2)") + LEAF + "f22(x).sum().backward()\n",
    "unknown conditions nested in loops": "def work(rows0, args, v):\n"
    + _indented(_nest(NESTS, "v = v.exp() + v\nv += 1\nif args.stop: break\nv = v * v\nif args.skip: continue\nv.sum().backward()"))
    + "    return v\n" + LEAF + "work(load(), load(), x)\n",
    "90 trainers, all called": "".join(TRAINER.format(n) for n in range(90)) + "loader = load()\n" + _many(90, "train{0}(loader)"),
    "gradients of gradients, one after the other": LEAF + "v = x.exp()\n"
    + _many(1400, "(v,) = torch.autograd.grad((v * v).sum(), [x], create_graph=True)"),
    "a penalty of a penalty": LEAF + "net = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))\nfor step in range(100):\n"
    + "    loss = net(x).mean()\n" + "    g = torch.autograd.grad(loss, [x, *net.parameters()], create_graph=True)\n    loss = loss + sum(each.pow(2).sum() for each in g)\n" * 12
    + "    loss.backward()\n",
    "a Hessian, row after row": LEAF + "g = torch.autograd.grad((x.exp() @ x).sum(), x, create_graph=True)[0].flatten()\n"
    "rows = [torch.autograd.grad(g[i], x, retain_graph=True, create_graph=True)[0] for i in range(64)]\n"
    "cubes = [[torch.autograd.grad(row.flatten()[i], x, retain_graph=True)[0] for i in range(64)] for row in rows]\n",
    "an attack whose steps are differentiated": "def attack(net, x, y):\n    delta = torch.zeros_like(x, requires_grad=True)\n"
    "    for step in range(50):\n        loss = F.cross_entropy(net(x + delta), y)\n"
    "        (g,) = torch.autograd.grad(loss, [delta], create_graph=True)\n        delta = (delta + 0.1 * g.sign()).clamp(-1, 1)\n    return x + delta\n"
    "net = nn.Sequential(*[nn.Linear(8, 8) for _ in range(20)])\nfor x, y in load():\n    F.cross_entropy(net(attack(net, x, y)), y).backward()\n",
    "keys that grow in loops": "def work(a, b):\n    while a.more(b):\n"
    + "        a = a.of(a, b)[b]\n        b = b[a].of(b, a)\n        if a > b: a, b = (b, a), {a: b}\n" * 60 + "    return a\n",
    "comprehensions inside comprehensions": LEAF
    + "t = [[[[[x[a] * b + c * d for a in range(30)] for b in range(30)] for c in range(30)] for d in range(30)] for e in range(30)]\n"
    "u = [v.exp_() for p in t for q in p for r in q for s in r for v in s if v.sum() > 0]\nsum(w.sum() for w in u).backward()\n",
    "a recursion that branches": LEAF + "def f(v, depth):\n    if depth == 0: return v.exp()\n    return f(v * 2, depth - 1) + f(v.sin(), depth - 1) * f(v, depth - 1)\nf(x, 30).sum().backward()\n",
    "a recursion over an unknown tree": "class Tree(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.cell = nn.Linear(8, 8)\n"
    "    def forward(self, node, h):\n        if node.leaf: return self.cell(node.value)\n        left = self.forward(node.left, h)\n        right = self.forward(node.right, left)\n"
    "        if node.gate: left += right\n        return self.cell(left * right) + sum(self.forward(each, h) for each in node.more)\nTree()(load(), torch.rand(8)).sum().backward()\n",
    "decorators around decorators": "import functools\ndef deco(f):\n    @functools.wraps(f)\n    def inner(*a, **k):\n        out = f(*a, **k)\n        return out + f(*a, **k)\n    return inner\n"
    + "@deco\n" * 40 + "def work(v): return v.exp()\n" + LEAF + _many(40, "work(x + {0}).sum().backward()"),
    "many views of one base": LEAF + "base = x * 1\n" + _many(900, "v{0} = base[{0} % 8:]\nv{0} += 1\nbase.view(-1)[{0} % 64] = 0") + "base.sum().backward()\n",
    "views that are taken and written in loops": LEAF + "for epoch in range(9):\n    base = x.exp()\n    parts = [base[i].view(-1) for i in range(8)]\n    for part in parts:\n"
    "        for other in parts:\n            part.mul_(other.view(8))\n            base[0] += part\n    base.sum().backward()\n",
    "containers of containers": LEAF + "store = {}\nfor i in range(40):\n    store[i] = [(x * i, {'at': [x + i], 'all': list(store.values())})]\n    for key in store:\n"
    "        store[key].append((store[key], {**store}))\n        for value, more in store[key]:\n            more['last'] = [value, more, store]\nimport copy\ncopies = [copy.deepcopy(store) for _ in range(9)]\n",
    "many heads and losses": "class Heads(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.trunk = nn.Linear(8, 8)\n        self.heads = nn.ModuleList([nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)) for _ in range(100)])\n"
    "    def forward(self, x):\n        h = torch.relu(self.trunk(x))\n        return [head(h) for head in self.heads]\nnet = Heads()\noptimizers = [torch.optim.Adam(head.parameters()) for head in net.heads]\n"
    "for x, y in load():\n    losses = [F.mse_loss(out, y) for out in net(x)]\n    for loss, optimizer in zip(losses, optimizers):\n        optimizer.zero_grad()\n        loss.backward(retain_graph=True)\n        optimizer.step()\n",
    "many losses of one graph": LEAF + "net = nn.Sequential(*[nn.Linear(8, 8) for _ in range(60)])\nout = net(x)\n" + _many(1400, "(out * {0}).sum().backward(retain_graph=True)\nx.grad.zero_()"),
    "hooks on everything": LEAF + "seen = []\ndef hook(g):\n    seen.append(g * 2)\n    return g + sum(each.sum() for each in seen)\nv = x\n" + _many(300, "v = v.sin() * v\nv.register_hook(hook)\nv.register_hook(lambda g: hook(hook(g)))") + "v.sum().backward(create_graph=True)\n",
    "loops over what is not known": "def work(state, v):\n    h = v\n" + _indented(_nest(WHILES, "h = h * v + state.next(h)\nif h.sum() > 3: break\nv = v + h.detach()\nstate.put(h)\n(h * v).sum().backward()")) + "    return h\nwork(load(), torch.rand(3, requires_grad=True))\n",
    "generators around generators": LEAF + "def source():\n    for i in range(100): yield x * i\n" + "def through(g):\n    for v in g:\n        yield v.exp()\n        yield from (v * w for w in [v, v])\n" + "g = source()\n" + "g = through(g)\n" * 40
    + "total = 0\nfor v in g:\n    v += 1\n    total = total + v.sum()\ntotal.backward()\n",
    "a recurrent network, unrolled": "cell = nn.LSTMCell(8, 8)\nh, c = torch.zeros(4, 8), torch.zeros(4, 8)\nkept = []\nfor step in range(500):\n    h, c = cell(torch.rand(4, 8), (h, c))\n    kept.append(h)\n    if step % 100 == 99:\n"
    "        sum(each.sum() for each in kept).backward(retain_graph=True)\n        kept = [each.detach() for each in kept]\n    h = torch.stack(kept[-9:]).mean(0)\n",
    "classes above classes": "class N0(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.last = nn.Linear(8, 8)\n    def forward(self, x): return self.last(x)\n"
    + _many(60, "class N{1}(N{0}):\n    def __init__(self):\n        super().__init__()\n        self.own{0} = nn.Linear(8, 8)\n    def forward(self, x):\n        h = super().forward(x)\n        return self.own{0}(h) + h.relu_()")
    + _many(60, "N{1}()(torch.rand(2, 8)).sum().backward()"),
    "a deep network in many places": "block = lambda: nn.Sequential(nn.Linear(8, 8), nn.ReLU(inplace=True), nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8)))\nnet = nn.Sequential(*[block() for _ in range(150)])\n" + _many(50, "net(torch.rand(2, 8) + {0}).sum().backward()"),
    "all features are joined in each layer": "layers = nn.ModuleList([nn.Linear(8 * (n + 1), 8) for n in range(150)])\nfeatures = [torch.rand(2, 8)]\nfor layer in layers:\n    features.append(F.relu(layer(torch.cat(features, 1)), inplace=True))\n    for feature in features:\n        feature = feature + features[-1]\ntorch.cat(features, 1).sum().backward()\n",
    "an average of many parameters": "net = nn.ModuleList([nn.Linear(8, 8) for _ in range(300)])\nimport copy\nslow = copy.deepcopy(net)\nfor step in range(100):\n    for p, q in zip(net.parameters(), slow.parameters()):\n        q.data.mul_(0.9).add_(0.1 * p.data)\n"
    "    state = {k: v.clone() for k, v in net.state_dict().items()}\n    slow.load_state_dict({k: 0.5 * (state[k] + v) for k, v in slow.state_dict().items()})\n    for p in net.parameters():\n        torch.optim.SGD([p], lr=0.1).step()\n",
    "attempts inside attempts": LEAF + "v = x\n" + _nest(["try:"] * 40, "v = risky(v.exp())\nv += 1\nv.sum().backward()").rstrip("\n") + "\n"
    + "".join("    " * n + "except Exception:\n" + "    " * (n + 1) + "v = v * 2\n" + "    " * n + "finally:\n" + "    " * (n + 1) + "v = v + x\n" for n in range(39, -1, -1)),
    "many kinds of one thing": "def work(kind, v):\n    if kind == 'none': w = v\n" + _many(300, "    elif kind == 'k{0}': w = v.exp() + {0}") + "    else: w = v * 2\n    w += 1\n    return w\n" + LEAF + _many(60, "work('k{0}', x).sum().backward()\nwork(load(), x).sum().backward()"),
    "many settings that are not known": "args = load()\nparts = []\n" + LEAF + "v = x\n" + _many(100, "if args.use{0}:\n    parts.append(nn.Linear(8, 8))\n    v = v + parts[-1](v)\nif args.keep{0} and len(parts) > {0}: v = v.exp()\nelif args.drop{0}: v += 1\nif args.more{0}:\n    parts.append(nn.Linear(8, 8))\n    v = v + parts[-1](v)\nif args.hold{0} and len(parts) > {0}: v = v.exp()\nelif args.double{0}: v = v * 2")
    + "for step in range(9):\n    for part in parts:\n        v = part(v)\nv.sum().backward()\n",
    "a thousand mistakes": LEAF + _many(700, "y{0} = x.exp()\ny{0} += 1\ny{0}.sum().backward()"),
    "mistakes on one line": LEAF + "; ".join(f"y{n} = x.exp(); y{n} += 1; y{n}.sum().backward()" for n in range(700)) + "\n",
    "one name in many hands": LEAF + "h = x.exp()\n" + _many(900, "a{0} = [h, {{'h': h}}]\nb{0} = a{0}") + "h += 1\n" * 900 + "h.sum().backward()\n",
    "a function of its own, many times": "class Mine(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, a, b):\n        ctx.save_for_backward(a, b)\n        return a * b\n    @staticmethod\n    def backward(ctx, g):\n        a, b = ctx.saved_tensors\n        return Mine.apply(g, b), Mine.apply(g, a)\n"
    + LEAF + "v = x\nfor step in range(200):\n    v = Mine.apply(v, v)\n" + "(v,) = torch.autograd.grad(v.sum(), [x], create_graph=True)\n" * 12,
    "functions that take functions": "from functools import partial, reduce\n" + LEAF + "fs = [lambda v, n=n: v * n for n in range(60)]\ncompose = lambda f, g: lambda v: f(g(v)) + g(f(v))\nall_of_them = reduce(compose, fs)\nall_of_them(x).sum().backward()\n"
    + _many(60, "partial(reduce(compose, fs[:{0} + 1]))(x).sum().backward()"),
    "derivatives of derivatives of functions": LEAF + "f = lambda v: (v.exp() * v).sum()\n" + "f = torch.func.grad(lambda v, f=f: f(v).sum() if not callable(f) else f(v).sum())\n" * 25 + "f(x)\ntorch.autograd.functional.hessian(f, x)\n",
    "modules that know each other": "class Agent(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.net = nn.Linear(8, 8)\n        self.others = []\n    def forward(self, x, depth=3):\n        h = self.net(x)\n        if depth:\n            for other in self.others: h = h + other(h, depth - 1)\n        return h\n"
    "agents = [Agent() for _ in range(40)]\nfor a in agents: a.others = [b for b in agents if b is not a]\nfor a in agents:\n    a.train()\n    a.zero_grad()\n    a(torch.rand(2, 8)).sum().backward()\n    a.eval()\n",
    "one expression of many terms": LEAF + "y = " + " + ".join(f"(x * {n}).exp()" for n in range(600)) + "\nz = " + "torch.relu(" * 80 + "y" + ")" * 80 + "\nw = [" + ", ".join("y * z" for _ in range(600)) + "]\ntorch.stack(w).sum().backward()\n",
    "a script of 2,900 lines": LEAF + "v = x\n" + _many(700, "a{0} = torch.sin(v)\nb{0} = a{0} * x\nv = torch.relu(b{0} + v)\nprint(v.mean().item())") + "v.sum().backward()\n",
}  # fmt: skip
PROGRAMS = {name: HEAD + text for name, text in PROGRAMS.items()}
