"""Objects of unknown make: what their methods are called with tells what they can be."""

from __future__ import annotations

import textwrap

import pytest

from gradguard.check.api import check
from gradguard.check.settings import Settings
from gradguard.source.text import Source


def codes(text: str, *, possible: bool = False) -> list[str]:
    """What is found in a program."""
    source = Source("/w/main.py", textwrap.dedent(text))
    return [one.code for one in check(source, Settings(all=possible)).findings]


def test_an_object_with_a_method_that_tensors_have_too_is_no_tensor() -> None:
    text = """
    import torch

    def train(engine, model):
        engine.gather((model, model))
        x, y = engine.prepare(model)
        for step in range(3):
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            x = x[torch.randperm(len(x))]
    """
    assert codes(text) == []


def test_a_method_called_as_tensors_have_it_tells_a_tensor() -> None:
    text = """
    import torch

    def pick(scores, index):
        found = scores.gather(1, index).exp()
        found += 1
        return found
    """
    assert codes(text, possible=True) == ["GG101"]


def test_any_method_named_backward_may_be_the_backward() -> None:
    text = """
    import torch
    from torch import nn

    class Trainer:
        def __init__(self):
            self.engine = None

        def fit(self, loader):
            model = nn.Linear(4, 1)
            losses = []
            for x in loader:
                losses.append(model(x).sum())
            for loss in losses:
                self.engine.backward(loss)
    """
    assert codes(text) == []


def test_what_stood_as_a_tensor_is_no_number() -> None:
    text = """
    import numbers
    import torch

    def item_of(x):
        return x if isinstance(x, numbers.Number) else x.item()

    def train(model, loss_of, optimizer=None):
        losses = []
        optimizer = torch.optim.Adam(model.parameters()) if optimizer is None else optimizer

        def closure():
            optimizer.zero_grad()
            loss = loss_of(model)
            loss.backward()
            return loss

        for _ in range(100):
            losses.append(KEPT(optimizer.step(closure)))
        return losses
    """
    assert codes(text.replace("KEPT", "item_of"), possible=True) == []
    assert codes(text.replace("KEPT", "")) == ["GG202"]


def test_a_tensor_is_iterable_and_no_list() -> None:
    text = """
    import torch
    from collections.abc import Iterable

    y = torch.rand(3, requires_grad=True).exp()
    if isinstance(y, KIND):
        y += 1
    y.sum().backward()
    """
    assert codes(text.replace("KIND", "Iterable")) == ["GG101"]
    assert codes(text.replace("KIND", "(list, tuple)")) == []


def test_annotated_numbers_are_no_tensors() -> None:
    text = """
    import torch
    from torch import nn

    def checked(size):
        return isinstance(size, torch.Tensor) and size.numel() == 1

    class Sampler(nn.Module):
        def forward(self, shape: SHAPE, x: torch.Tensor):
            size = shape[0]
            checked(size)
            if size == 0:
                return x.cuda()
            return torch.zeros(size, device="cuda") + x
    """
    for shape in ("tuple[int, ...]", "tuple[int, int]", "'tuple[int, ...]'", "list[int]"):
        assert codes(text.replace("SHAPE", shape)) == []
    assert codes(text.replace("SHAPE", "torch.Tensor")) == ["GG302", "GG302"]
    for shape in ("tuple[()]", "tuple[int, ...] | None", "list[tuple[int, int]]", "Tuple[int, Unknown]"):
        assert codes(text.replace("SHAPE", shape), possible=True) is not None


def test_a_number_or_a_tensor_annotated_stays_either() -> None:
    text = """
    import torch

    def shifted(x: float | torch.Tensor, y):
        if isinstance(x, torch.Tensor):
            z = x.exp()
            z += 1
            z.sum().backward()
    """
    assert codes(text, possible=True) == ["GG101"]


def test_a_count_that_may_be_a_number_is_not_waited_for() -> None:
    text = """
    import torch
    from torch import nn

    class Spread(nn.Module):
        def forward(self, x, count):
            return x.cuda().repeat_interleave(COUNT, dim=1)
    """
    assert codes(text.replace("COUNT", "count"), possible=True) == []
    assert codes(text.replace("COUNT", "torch.tensor([1, 2], device='cuda')")) == ["GG302", "GG304"]


def test_a_dtype_is_no_tensor() -> None:
    text = """
    import torch

    def collect(graph):
        found = []
        for node in graph:
            found.append(node.OF.numpy())
        return found, torch.zeros(3).to("cuda")
    """
    assert codes(text.replace("OF", "dtype"), possible=True) == []
    assert codes(text.replace("OF.numpy", "value.tolist")) == ["GG301"]


def test_what_numpy_gets_lies_on_the_cpu() -> None:
    text = """
    import numpy
    import torch
    from torch import nn

    class Cut(nn.Module):
        def forward(self, image: torch.Tensor):
            parts = PARTS
            return torch.from_numpy(parts).to("cuda")
    """
    for parts in ("image.double().numpy()", "numpy.asarray(image)", "numpy.where(image)"):
        assert codes(text.replace("PARTS", parts)) == []
    assert codes(text.replace("PARTS", "image.cpu().numpy()")) == ["GG301"]


def test_what_is_made_like_another_has_no_graph() -> None:
    text = """
    import torch
    from torch import nn

    class Scale(nn.Module):
        def forward(self, feats, boxes, stride):
            with torch.no_grad():
                boxes = boxes.exp()
            strides = torch.cat([feats.new_full((3, 1), stride)])
            scaled = boxes / strides
            boxes /= strides
            return scaled
    """
    assert codes(text) == []
    assert codes(text.replace("feats.new_full((3, 1), stride)", "feats.exp()")) == ["GG101"]


def test_a_width_that_is_given_is_not_looked_up() -> None:
    text = """
    import torch
    from torch import nn

    class Counts(nn.Module):
        def forward(self, labels: torch.Tensor, width):
            return nn.functional.one_hot(labels.cuda(), WIDTH)
    """
    for width in ("width", "num_classes=self.width + 1", "num_classes=8"):
        assert codes(text.replace("WIDTH", width), possible=True) == []
    for width in ("", "-1"):
        assert codes(text.replace("WIDTH", width)) == ["GG302"]


def test_what_only_an_export_does_is_not_done() -> None:
    text = """
    import torch
    from torch import nn

    class Windows(nn.Module):
        def forward(self, x, size):
            if torch.jit.is_tracing():
                size = torch.min(torch.tensor(size, device="cuda"))
            return x.view(-1, size)
    """
    assert codes(text, possible=True) == []
    assert codes(text.replace("torch.jit.is_tracing()", "self.training")) == ["GG302"]


def test_methods_that_nothing_calls_on_every_step() -> None:
    text = """
    import torch
    from torch import nn

    class Sampler(nn.Module):
        def NAME(self, scale, device):
            self.scale = torch.as_tensor(scale, device=device)
            if not 0 <= self.scale <= 1:
                raise ValueError
            return self.scale
    """
    assert codes(text.replace("NAME", "configure")) == []
    assert codes(text.replace("NAME", "forward")) == ["GG302"]


def test_a_device_in_a_docstring_is_no_device_of_the_code() -> None:
    text = '''
    import torch

    def collect(rows):
        """Call it with `device="cuda"`."""
        found = []
        for row in rows:  # on "cuda" or not
            found.append(row.exp().sum().item())
        return found
    '''
    assert codes(text) == []
    assert codes(text + '\n    DEVICE = "cuda"\n') == ["GG301"]


def test_what_counts_or_sizes_is_a_number() -> None:
    text = """
    import torch
    from torch import nn

    class Rotary(nn.Module):
        def __init__(self, width, turn=None):
            super().__init__()
            self.project = nn.Linear(width, width)
            self.angles = ANGLES

        def forward(self, x: torch.Tensor):
            x = self.project(x)
            x[:, :3] = x[:, :3] * self.angles
            return x
    """
    for angles in (
        "torch.arange(width) / width",
        "torch.ones(width, 2) / width",
        "sum(torch.ones(2) / width for _ in range(width))",
    ):
        assert codes(text.replace("ANGLES", angles)) == []
    assert codes(text.replace("ANGLES", "nn.Parameter(torch.ones(width))")) == ["GG101"]


def test_batch_statistics_are_what_backward_needs_while_training() -> None:
    text = """
    import torch
    from torch import nn

    class Stack(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.norm = nn.BatchNorm1d(config.width, momentum=config.momentum)

        def forward(self, x):
            for _ in range(2):
                x = self.norm(x)
            return x
    """
    assert codes(text, possible=True) == []


def test_what_a_constructor_is_given_is_a_setting() -> None:
    text = """
    import torch
    from torch import nn

    class Position(nn.Module):
        def __init__(self, config):
            super().__init__()
            self.base = BASE

        def forward(self, x):
            steps = torch.arange(4, dtype=torch.float32)
            steps.copy_(self.base OPERATOR steps)
            return x / steps
    """
    for operator in ("**", "*"):
        program = text.replace("OPERATOR", operator)
        for setting in ("config.base", "config.base / 2", "config['base']", "2 * config.get('base')"):
            assert codes(program.replace("BASE", setting)) == [], setting
        for learned in ("nn.Parameter(config.base)", "nn.Parameter(torch.rand(4))"):
            assert codes(program.replace("BASE", learned)) == ["GG101"]


def test_what_a_forward_is_given_was_computed() -> None:
    text = """
    import torch
    from torch import nn

    class Scale(nn.Module):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

        def forward(self, x):
            scaled = x.sigmoid()
            return scaled.mul_(self.factor)
    """
    assert codes(text) == ["GG101"]


def test_a_tensor_among_the_numbers_of_a_tuple_is_a_setting() -> None:
    text = """
    import torch
    from torch import nn

    class Embed(nn.Module):
        def coords(self, grid: torch.Tensor, scale: {}) -> torch.Tensor:
            grid = torch.zeros_like(grid)
            grid[0:1] = grid[0:1] * scale[0]
            return grid
    """
    assert codes(text.format("tuple[torch.Tensor, float, float]")) == []
    assert codes(text.format("tuple[torch.Tensor, torch.Tensor]")) == ["GG101"]
    assert codes(text.format("tuple[torch.Tensor, Unknown]")) == ["GG101"]


def test_an_annotated_number_is_one_inside_of_the_function_only() -> None:
    text = """
    import torch

    def scaled(x, factor{}):
        out = factor * x.detach()
        if factor > 0:
            out = out + 1
        return out

    def train(model, factor):
        device = torch.device("cuda")
        for step in range(3):
            scaled(model(torch.rand(3, device=device)), factor)
        out = factor.exp()
        out += 1
        return out
    """
    assert codes(text.format(""), possible=True) == ["GG302", "GG101"]
    assert codes(text.format(": float"), possible=True) == ["GG101"]


def test_a_table_given_to_a_network_needs_no_gradient() -> None:
    text = """
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.proj = nn.Linear(4, 4)

        def forward(self, x, NAME: torch.Tensor):
            query = self.proj(x).reshape(2, 3, 4)
            query[:, 1:] = query[:, 1:] * NAME
            return query
    """
    for name in ("rotary_emb", "freqs_cis", "cos", "attention_mask", "position_embeddings", "masks"):
        assert codes(text.replace("NAME", name)) == [], name
    for name in ("gain", "cosine", "masked", "query_position_embeddings"):
        assert codes(text.replace("NAME", name)) == ["GG101"], name


def test_what_a_tokenizer_made_lies_on_the_device_when_it_was_moved() -> None:
    text = """
    import torch

    def lengths(tokenizer, texts):
        found = []
        for text in texts:
            encoded = tokenizer([text], return_tensors="pt")
            {moved}
            found += encoded["input_ids"].tolist()
        return found
    """
    assert codes(text.replace("{moved}", "encoded.to('cuda')")) == ["GG301"]
    assert codes(text.replace("{moved}", "print(encoded)")) == []


_LOSSES = {
    "an iterable": "def f(xs):\n    total = torch.zeros(())\n    for x in xs:\n        total = total + x\n    total.backward()",
    "its methods": "def f(xs):\n    total = torch.zeros(())\n    for x in xs:\n        total = total + x.a.sum()\n    total.backward()",
    "written in place": "def f(xs):\n    total = torch.zeros(())\n    for x in xs:\n        total += x\n    total.backward()",
    "further arguments": "def f(*xs):\n    torch.stack(xs).sum().backward()",
    "arguments by name": "def f(**xs):\n    torch.stack(list(xs.values())).sum().backward()",
    "a part of a tensor": "def f(xs):\n    for x in xs:\n        y = torch.cat([x, torch.ones(2)])[0]\n    y.backward()",
    "children of a module": "def f(net):\n    x = torch.ones(2)\n    for child in net.children():\n        x = child(x)\n    x.sum().backward()",
    "modules of a container": """def f(net):
    x = torch.zeros(())
    for one in net.modules():
        if isinstance(one, torch.nn.Linear):
            x = x + one.weight.sum()
    x.backward()""",
    "a name that may be there": "def f(a, b):\n    x = torch.ones(2)\n    if a in b:\n        x = x * b[a]\n    x.sum().backward()",
    "a test": "def f(a, w: torch.nn.Parameter):\n    x = torch.ones(2)\n    if a:\n        x = x * w\n    x.sum().backward()",
    "one of several modules": """def f(i):
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    net[i](torch.ones(2)).sum().backward()""",
    "moved": "def f(xs):\n    for x in xs:\n        x.to('cpu').sum().backward()",
}


@pytest.mark.parametrize("text", _LOSSES.values(), ids=_LOSSES)
def test_what_is_not_known_may_bring_a_graph(text: str) -> None:
    assert codes(f"import torch\n\n{text}\n") == []


def test_what_a_loader_gives_brings_none() -> None:
    text = """
    import torch
    from torch.utils.data import DataLoader

    def train(data):
        for x in DataLoader(data):
            (torch.ones(2) + x).backward()
    """
    assert codes(text) == ["GG205"]


_GIVEN = {
    "an inner loop of a library": ("learner.adapt((net(x) - y).pow(2).mean())", []),
    "a step of something": ("optimizer.step(net(x).mean())", []),
    "a log": ("writer.add_scalar('loss', net(x).mean())", ["GG204"]),
    "a name": ("kept = net(x).mean()", ["GG204"]),
}


@pytest.mark.parametrize(("statement", "found"), _GIVEN.values(), ids=_GIVEN)
def test_code_that_is_not_read_may_differentiate_what_it_gets(statement: str, found: list[str]) -> None:
    text = f"""
    import torch

    def fit(data, learner, optimizer, writer):
        net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
        for x, y in data:
            {statement}
    """
    assert codes(text) == found


def test_a_sum_that_is_differentiated_elsewhere_does_not_grow_for_nothing() -> None:
    text = """
    import torch

    def fit(data, optimizer):
        net = torch.nn.Linear(3, 3)
        total = 0
        for x in data:
            total = total + net(x).mean()
            if len(x) > 3:
                optimizer.step(total)
                total = 0
    """
    assert codes(text) == []


def test_what_an_op_with_out_would_have_made_is_no_loss_without_a_graph() -> None:
    text = """
    import torch

    w, buffer = torch.rand(3, requires_grad=True), torch.empty(3)
    torch.exp(w, out=buffer)
    buffer.sum().backward()
    """
    assert codes(text) == []


def test_a_list_of_an_unknown_object_that_is_kept_in_place_has_no_views() -> None:
    text = """
    import torch

    def told(editor):
        shown = [each["params"] for each in editor.sent if each.get("method") == "show"]
        editor.sent[:] = [each for each in editor.sent if each.get("method") != "show"]
        return [each["message"] for each in shown]

    def check(editor):
        assert told(editor) == []
        assert told(editor) == []
    """
    assert codes(text) == []
