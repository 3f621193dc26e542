"""What training code does besides plain loops: the program runs as without the monitor, and is still watched."""

from __future__ import annotations

import pytest
from tests.oracle.pool import Died, shared_pool
from tests.runtime.watching import RUN, Watched

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
"""

PROGRAMS = {
    "autocast": """
net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = net(torch.rand(4, 8)).float().pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "checkpoint": """
from torch.utils.checkpoint import checkpoint, checkpoint_sequential
net = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 1))
for reentrant in (False, True):
    x = torch.rand(4, 8, requires_grad=True)
    checkpoint(net, x, use_reentrant=reentrant).sum().backward()
    checkpoint_sequential(net, 2, x, use_reentrant=reentrant).sum().backward()
result = x.grad
""",
    "saved tensor hooks": """
calls = []
def pack(t):
    calls.append("pack")
    return t.clone()
def unpack(t):
    calls.append("unpack")
    return t
x = torch.rand(4, requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
    y = x.exp() * x
y.sum().backward()
print(calls)
with torch.autograd.graph.save_on_cpu():
    (x.sin() * x).sum().backward()
""",
    "composite operators in inference mode": """
w = nn.Parameter(torch.rand(3, 3))
base = w * 1
with torch.inference_mode():
    for view in (base.expand_as(base), base.view_as(base), base.reshape(9), base.mT, base.flatten(), base.narrow(0, 1, 2)):
        view.add_(0.1)
        print(view._is_view(), view.is_inference(), base._version, float(view.sum()))
    print(torch.einsum("ij,jk->ik", base, w).tolist(), nn.functional.linear(base, w).is_inference())
try:
    view.mul_(2)
except RuntimeError as error:
    print(error)
print(base.grad_fn.name())
""",
    "compile": """
counts = []
def backend(graph, inputs):
    counts.append(len(graph.graph.nodes))
    return graph.forward
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g * 2
@torch.compile(backend=backend, fullgraph=True)
def f(x, w):
    return Double.apply(F.relu(x @ w)).sum()
w = torch.rand(3, 3, requires_grad=True)
for _ in range(3):
    f(torch.rand(2, 3), w).backward()
net = torch.compile(nn.Linear(3, 3), backend="aot_eager")
net(torch.rand(2, 3)).sum().backward()
grad = net.weight.grad
print(counts)
""",
    "data loader workers": """
from torch.utils.data import DataLoader, Dataset
class Squares(Dataset):
    def __len__(self):
        return 12
    def __getitem__(self, i):
        t = torch.full((3,), float(i))
        return t * t
net = nn.Linear(3, 1)
for batch in DataLoader(Squares(), batch_size=4, num_workers=2, shuffle=True):
    net(batch).sum().backward()
grad = net.weight.grad
""",
    "threads": """
import threading
results = {}
def work(n):
    w = torch.full((3,), float(n), requires_grad=True)
    for _ in range(3):
        (w * w).exp().sum().backward()
    results[n] = w.grad
threads = [threading.Thread(target=work, args=(n,)) for n in (1, 2)]
for t in threads:
    t.start()
for t in threads:
    t.join()
first, second = results[1], results[2]
""",
    "hooks": """
seen = []
net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
net[0].register_forward_hook(lambda m, i, o: seen.append("forward"))
net[1].register_full_backward_hook(lambda m, i, o: seen.append("full"))
net[2].weight.register_hook(lambda g: g * 2)
net[2].bias.register_post_accumulate_grad_hook(lambda p: seen.append("accumulated"))
x = torch.rand(2, 3, requires_grad=True)
handle = x.register_hook(seen.append)
net(x).sum().backward()
handle.remove()
net(x).sum().backward()
print(len(seen), [s for s in seen if isinstance(s, str)])
a, b = net[2].weight.grad, x.grad
""",
    "custom functions": """
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, power=2):
        ctx.save_for_backward(x)
        return x ** power
    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g, None
x = torch.rand(3, requires_grad=True)
y = Square.apply(x)
(g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
g.pow(2).sum().backward()
result = x.grad
""",
    "func transforms": """
from torch.func import functional_call, grad, hessian, jacrev, vmap
net = nn.Linear(3, 1)
params = dict(net.named_parameters())
def loss(p, x):
    return functional_call(net, p, x).pow(2).sum()
per_sample = vmap(grad(loss), in_dims=(None, 0))(params, torch.rand(4, 3))["weight"]
jac = jacrev(lambda x: x.sin())(torch.rand(3))
hes = hessian(lambda x: x.pow(3).sum())(torch.rand(3))
""",
    "transformer in eval": """
layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
net = nn.TransformerEncoder(layer, 2).eval()
x = torch.rand(2, 5, 8)
with torch.no_grad():
    fast = net(x)
slow = net.train()(x)
slow.sum().backward()
grad = net.layers[0].linear1.weight.grad
""",
    "operators that ask whether somebody stands below": """
x = torch.rand(5, 5)
x = x + x.T
print(torch.linalg.eigvalsh(x).tolist(), torch.linalg.svdvals(x).tolist(), torch.linalg.cond(x).item())
print(torch.linalg.matrix_norm(x, "nuc").item(), torch.fft.hfftn(x, (5, 6)).tolist())
try:
    x.reshape(7)
except RuntimeError as error:
    print(error)
from torch.utils._python_dispatch import _get_current_dispatch_mode
print(_get_current_dispatch_mode())
""",
    "tensors of other types": """
import copy
class Marked(torch.Tensor):
    pass
class Weight(nn.Parameter):
    pass
x = torch.rand(3)
for made in (Marked([1.0, 2.0]), Marked(x), Marked(2, 3).zero_(), x.as_subclass(Marked), Weight(x), nn.Buffer(x)):
    print(type(made), type(made * 2), made.tolist())
print(type(copy.deepcopy(Weight(x))), type(torch.Tensor([1.0])), torch.Tensor(x).tolist())
w = Weight(torch.rand(3))
(w * 2).sum().backward()
grad = w.grad
""",
    "tensors without values": """
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
with FakeTensorMode() as fake:
    known = fake.from_tensor(torch.rand(3, 4))
    print((known @ torch.rand(4, 5)).shape, type(known))
print(make_fx(lambda a: (a * 2).sin(), tracing_mode="fake")(torch.rand(3)).code)
with torch.device("meta"):
    print(nn.Linear(3, 4)(torch.rand(2, 3)).shape)
""",
    "operators of higher order": """
x = torch.rand(3, requires_grad=True)
y = torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a.cos(), (x,))
y.sum().backward()
grad = x.grad
from torch.func import grad as derivative, vmap
print(vmap(derivative(lambda a: (a ** 2).sum()))(torch.rand(2, 3)).tolist())
""",
    "user dispatch mode": """
from torch.utils._python_dispatch import TorchDispatchMode
class Count(TorchDispatchMode):
    n = 0
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        Count.n += 1
        return func(*args, **(kwargs or {}))
x = torch.rand(3, requires_grad=True)
with Count():
    (x * x).sum().backward()
print(Count.n)
class Inner(Count):
    pass
class Wrapped(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
    def __init__(self, inner):
        self.inner = inner
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        plain = [a.inner if isinstance(a, cls) else a for a in args]
        return cls(func(*plain, **(kwargs or {})))
with Count(), Inner():
    print(type(Wrapped(torch.ones(3)) * 2))
with torch._C._DisableTorchDispatch():
    print(type(torch.Tensor.detach(Wrapped(torch.ones(3)))))
print(Count.n)
from torch.utils.flop_counter import FlopCounterMode
with FlopCounterMode(display=False) as flops:
    (torch.rand(3, 4) @ torch.rand(4, 5)).sum()
print(flops.get_total_flops())
""",
    "lbfgs": """
net = nn.Linear(3, 1)
opt = torch.optim.LBFGS(net.parameters(), max_iter=5)
x, y = torch.rand(8, 3), torch.rand(8, 1)
def closure():
    opt.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    return loss
for _ in range(3):
    opt.step(closure)
weight = net.weight.detach()
""",
    "optimizer that raises": """
w = torch.rand(3, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
opt.register_step_post_hook(lambda *a: (_ for _ in ()).throw(ValueError("no")))
for _ in range(3):
    (w * w).sum().backward()
    try:
        opt.step()
    except ValueError as error:
        print(error)
z = w.exp()
""",
    "grad scaler": """
w = torch.rand(3, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
scaler = torch.amp.GradScaler("cpu")
for _ in range(3):
    loss = (w * w).sum()
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    nn.utils.clip_grad_norm_([w], 0.5)
    scaler.step(opt)
    scaler.update()
""",
    "sparse and quantised": """
e = nn.Embedding(10, 3, sparse=True)
e(torch.tensor([1, 2])).sum().backward()
dense = e.weight.grad.to_dense()
i = torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], requires_grad=True)
torch.sparse.mm(i, torch.rand(2, 2)).sum().backward()
q = torch.quantize_per_tensor(torch.rand(3), 0.1, 0, torch.quint8).dequantize()
""",
    "anomaly detection": """
x = torch.rand(3, requires_grad=True)
with torch.autograd.detect_anomaly(check_nan=False):
    (x.exp() * 2).sum().backward()
""",
    "nested backward": """
class Inner(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        with torch.enable_grad():
            ctx.inner = x.detach().requires_grad_()
            ctx.out = ctx.inner.exp()
        return ctx.out.detach()
    @staticmethod
    def backward(ctx, g):
        ctx.out.backward(g)
        return ctx.inner.grad
x = torch.rand(3, requires_grad=True)
Inner.apply(x).sum().backward()
""",
    "parametrizations": """
from torch.nn.utils.parametrizations import spectral_norm, weight_norm
net = nn.Sequential(spectral_norm(nn.Linear(4, 4)), weight_norm(nn.Linear(4, 1)))
for _ in range(2):
    net(torch.rand(3, 4)).sum().backward()
grad = net[0].parametrizations.weight.original.grad
""",
    "views of written bases": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.flat = nn.Parameter(torch.rand(3))
        self.row = self.flat[None]
    def forward(self, x):
        return (self.row * self.row * x).sum()
mu = torch.rand(3, requires_grad=True)
rows = []
for step in range(6):
    v = mu[None]
    nn.init.trunc_normal_(v, std=0.1)
    rows.append(mu[:2])
    with torch.no_grad():
        mu.mul_(1.1)
        v.norm(), rows[-1].detach() + 1
    a = mu / 3
    feat = mu * mu
    logits = v * v
    print(v.detach().sum().item() > 9, float(rows[0].sum()) > 9)
    feat *= 3
    (logits.sum() + a.sum() + feat.sum() + rows[0].sum()).backward(retain_graph=True)
net = Net()
torch.nn.init.uniform_(net.flat)
opt = torch.optim.SGD([net.flat], lr=0.1)
for _ in range(3):
    net(torch.rand(1, 3)).backward()
    opt.step()
    opt.zero_grad()
grad = mu.grad
""",
    "data and storage": """
w = nn.Parameter(torch.rand(4))
for _ in range(3):
    y = (w * w).exp().sum()
    w.data = w.data.clone()
    y.backward()
    w.data.add_(w.grad, alpha=-0.1)
    w.grad = None
print(w.data.is_leaf, torch.Tensor.data.__get__(w).requires_grad, type(w.data))
half = w.to(torch.float64)
half.data = half.data.float()
print(half.dtype)
@torch.compile(backend="eager")
def f(x):
    x.data = x.data + 1
    return x.data * 2
out = f(torch.rand(3))
""",
    "double backward": """
x = torch.rand(4, requires_grad=True)
for _ in range(3):
    (g,) = torch.autograd.grad(x.pow(4).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sin().sum(), x, create_graph=True)
    h.pow(2).sum().backward()
y = (x * x).sum()
y.backward(retain_graph=True)
y.backward()
hessian = torch.autograd.functional.hessian(lambda t: t.pow(3).sum(), torch.rand(3))
print(torch.autograd.gradcheck(torch.sin, torch.rand(2, dtype=torch.double, requires_grad=True)))
print(torch.autograd.gradgradcheck(torch.sin, torch.rand(2, dtype=torch.double, requires_grad=True)))
result = x.grad
""",
    "complex and empty": """
z = torch.rand(3, dtype=torch.cfloat, requires_grad=True)
(z.conj() * z.exp()).abs().sum().backward()
torch.fft.irfft(torch.fft.rfft(torch.rand(8, requires_grad=True))).sum().backward()
e = torch.rand(0, 3, requires_grad=True)
e.data = torch.rand(0, 3)
out = e.exp()
out.data.add_(1)
(out @ torch.rand(3, 2)).sum().backward()
torch.stack([torch.rand((), requires_grad=True)]).prod().backward()
grad, empty = torch.view_as_real(z.grad), e.grad
""",
    "library that patches torch": """
old, calls = torch.Tensor.backward, []
def backward(self, *args, **kwargs):
    calls.append(type(self).__name__)
    return old(self, *args, **kwargs)
torch.Tensor.backward = backward
old_add, old_data = torch.Tensor.add_, torch.Tensor.cpu
torch.Tensor.add_ = lambda self, other: old_add(self, other)
torch.Tensor.cpu = lambda self: old_data(self)
old_grad = torch.autograd.grad
torch.autograd.grad = lambda *args, **kwargs: old_grad(*args, **kwargs)
x = torch.rand(3, requires_grad=True)
y = (x * x).add_(1).cpu()
y.sum().backward()
print(calls, torch.autograd.grad((x * 2).sum(), x))
""",
    "subclass and function mode": """
from torch.overrides import TorchFunctionMode
class Named(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        seen.append(getattr(func, "__name__", "?"))
        return super().__torch_function__(func, types, args, kwargs or {})
class Log(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        seen.append("mode " + getattr(func, "__name__", "?"))
        return func(*args, **(kwargs or {}))
seen = []
t = torch.rand(3).as_subclass(Named).requires_grad_()
(t * 2).sum().backward()
t.data = t.data * 2
t.detach().cpu().numpy()
x = torch.rand(3, requires_grad=True)
with Log():
    (x * 2).add_(1).sum().backward()
    x.data = x.data + 1
    x.register_hook(print)
print(seen)
""",
    "many threads with hooks": """
import threading
results, barrier = {}, threading.Barrier(4)
def work(n):
    w = torch.full((3,), float(n + 1), requires_grad=True)
    opt = torch.optim.SGD([w], lr=0.01)
    for _ in range(10):
        barrier.wait()
        y = w * 2
        y.register_hook(lambda g: g * 2)
        (y * y).sum().backward()
        opt.step()
        opt.zero_grad()
    results[n] = w.detach()
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
a, b, c, d = (results[n] for n in range(4))
""",
    "memory is freed": """
import gc, weakref
x = torch.rand(3, requires_grad=True)
y = x.exp()
gone = weakref.ref(y)
z = y.sum()
del y
print(gone() is None or z.grad_fn is not None)
z.backward()
del z
print(gone() is None)
""",
}


def both(name: str, **options) -> tuple[Watched, Watched]:
    code = HEAD + PROGRAMS[name]
    pool = shared_pool()
    runs = [
        pool.call(RUN, timeout=120, code=code, prelude="", light=options.get("light", False), watched=watched)
        for watched in (False, True)
    ]
    assert not [r for r in runs if isinstance(r, Died)], runs
    return runs[0], runs[1]


def bits(watched: Watched) -> list:
    import numpy

    def plain(array):
        return None if array is None else (array.shape, numpy.ascontiguousarray(array).tobytes())

    return [
        watched.stdout,
        (watched.error_type, watched.error, watched.line),
        [(n, plain(a)) for n, a in watched.gradients],
        {n: plain(a) for n, a in watched.final.items()},
    ]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("light", [False, True], ids=["full", "light"])
def test_runs_as_without_the_monitor(name, light):
    plain, watched = both(name, light=light)
    assert plain.error == "", plain.error
    ours, theirs = bits(plain), bits(watched)
    if "threads" in name:
        # The order in which threads come to their gradients is not fixed.
        ours[2] = theirs[2] = []
    assert ours == theirs
    assert not watched.troubles
    faults = {"GG101", "GG102", "GG103", "GG105", "GG106", "GG107", "GG109", "GG203"}
    assert not {code for _, code in watched.lines} & faults, watched.findings


def test_compiled_regions_are_said_to_be_skipped():
    _, watched = both("compile")
    assert any("torch.compile" in limit for limit in watched.limits)


def test_threads_are_watched():
    code = HEAD + (
        "import threading\ndef work():\n    x = torch.rand(3, requires_grad=True)\n    y = x.exp()\n    y.add_(1)\n"
        "    try:\n        y.sum().backward()\n    except RuntimeError:\n        pass\n"
        "t = threading.Thread(target=work)\nt.start()\nt.join()\n"
    )
    watched = shared_pool().call(RUN, timeout=60, code=code, prelude="", light=False)
    assert {code for _, code in watched.lines} == {"GG101"}
