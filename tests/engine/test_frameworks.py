"""Hooks that a framework calls, and what `prepare` and `setup` hand back."""

from __future__ import annotations

import textwrap

import pytest

from tests.engine.analysing import findings
from tests.oracle import judge


def told(text: str) -> list[tuple[str, int]]:
    """Code and line of what is found, wrong or not worth a warning alike."""
    return [(one.code, one.span.line) for one in findings(textwrap.dedent(text))]


LIGHTNING = """
import torch
from torch import nn
import lightning as L

class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.GRU(3, 4)
        self.head = nn.Sequential(nn.Linear(4, 4), nn.Sigmoid())
        self.total, self.kept, self.h = 0.0, [], None

    def configure_optimizers(self):
        return {"optimizer": torch.optim.SGD(self.parameters(), lr=0.1)}

"""
FIT = """
loader = torch.utils.data.DataLoader(torch.randn(4, 2, 3), batch_size=2)
L.Trainer(max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False, accelerator="cpu").fit(Net(), loader)
"""
STEPS = {
    "added up": (
        "    def training_step(self, batch, batch_idx):\n        loss = self.net(batch)[0].mean()\n"
        "        self.total += loss\n        return loss\n",
        [("GG201", 18)],
    ),
    "detached": (
        "    def training_step(self, batch, batch_idx):\n        loss = self.net(batch)[0].mean()\n"
        "        self.total += loss.detach()\n        return loss\n",
        [],
    ),
    "stored, with the loss in a dictionary": (
        "    def training_step(self, batch, batch_idx):\n        loss = self.net(batch)[0].mean()\n"
        "        self.kept.append(loss)\n        return {'loss': loss}\n",
        [("GG202", 18)],
    ),
    "carried": (
        "    def training_step(self, batch, batch_idx):\n        out, self.h = self.net(batch, self.h)\n"
        "        return out.mean()\n",
        [("GG203", 17)],
    ),
    "carried and detached": (
        "    def training_step(self, batch, batch_idx):\n        out, h = self.net(batch, self.h)\n"
        "        self.h = h.detach()\n        return out.mean()\n",
        [],
    ),
    "written": (
        "    def training_step(self, batch, batch_idx):\n        y = self.head(self.net(batch)[0])\n"
        "        y.mul_(2)\n        return y.mean()\n",
        [("GG101", 18)],
    ),
    "stored in validation": (
        "    def validation_step(self, batch, batch_idx):\n        self.kept.append(self.net(batch)[0].mean())\n",
        [],
    ),
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("fit", ["", FIT], ids=["alone", "run"])
def test_lightning_calls_the_step_again_and_again(name: str, fit: str) -> None:
    step, expected = STEPS[name]
    if "training_step" not in step and fit:
        step += "\n    def training_step(self, batch, batch_idx):\n        return self.net(batch)[0].mean()\n"
    assert told(LIGHTNING + step + fit) == expected


@pytest.mark.parametrize("name", STEPS)
def test_the_real_lightning_does_so(name: str) -> None:
    pytest.importorskip("lightning")
    step, expected = STEPS[name]
    if "training_step" not in step:
        step += "\n    def training_step(self, batch, batch_idx):\n        return self.net(batch)[0].mean()\n"
    outcome = judge(LIGHTNING + step + FIT, timeout=180).outcome
    assert (outcome == "raises") is (expected[:1] in ([("GG203", 17)], [("GG101", 18)]))


MANUAL = """
import torch
from torch import nn
import pytorch_lightning as pl

class Gan(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.G, self.D = nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

    def configure_optimizers(self):
        return [torch.optim.Adam(self.G.parameters()), torch.optim.Adam(self.D.parameters())], []

    def training_step(self, batch, batch_idx):
        first, second = self.optimizers()
        fake = self.G(torch.randn(4, 2))
        {}
"""
WRONG = """of_d, of_g = self.D(fake.detach()).mean(), -self.D(fake).mean()
        self.manual_backward(of_d)
        second.step()
        self.manual_backward(of_g)
        first.step()"""
RIGHT = """of_d = self.D(fake.detach()).mean()
        self.manual_backward(of_d)
        second.step()
        of_g = -self.D(fake).mean()
        self.manual_backward(of_g)
        first.step()"""


def test_optimizers_are_those_of_configure_optimizers() -> None:
    assert told(MANUAL.format(WRONG)) == [("GG106", 20)]
    assert told(MANUAL.format(RIGHT)) == []


HUGGING_FACE = """
from transformers import Trainer

class Sums(Trainer):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.parts = {{"a": 0.0}}

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        out = model(inputs["x"])
        loss = out.square().mean()
        self.parts["a"] += loss{}
        return (loss, out) if return_outputs else loss
"""


def test_the_trainer_of_transformers_differentiates_the_loss_of_each_step() -> None:
    assert told(HUGGING_FACE.format("")) == [("GG201", 12)]
    assert told(HUGGING_FACE.format(".detach()")) == []


IGNITE = """
import torch
from torch import nn
from ignite.engine import Engine, Events

model = nn.Linear(3, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
seen = []

def update(engine, batch):
    opt.zero_grad()
    loss = model(batch).mean()
    loss.backward()
    opt.step()
    return loss{}

def keep(engine, where):
    where.append(engine.state.output)

trainer = Engine(update)
trainer.add_event_handler(Events.ITERATION_COMPLETED, keep, seen)
trainer.run([torch.randn(2, 3) for _ in range(4)], max_epochs=1)
"""


def test_handlers_of_ignite_run_after_each_step() -> None:
    assert told(IGNITE.format("")) == [("GG202", 18)]
    assert told(IGNITE.format(".item()")) in ([], [("GG301", 15)])


PREPARED = """
import torch
from torch import nn
{}

def train({}):
    gen, critic = nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 4), nn.SiLU(), nn.Linear(4, 1))
    of_gen, of_critic = (torch.optim.AdamW(one.parameters()) for one in (gen, critic))
    {}
    for _ in range(2):
        y = gen(torch.randn(4, 3))
        first, second = critic(y.detach()).mean(), -critic(y).mean()
        acc.backward(first)
        of_critic.step()
        acc.backward(second)
        of_gen.step()
{}
"""
ALL = "gen, critic, of_gen, of_critic = acc.prepare(gen, critic, of_gen, of_critic)"
EACH = "gen, of_gen = acc.setup(gen, of_gen)\n    critic, of_critic = acc.setup(critic, of_critic)"


@pytest.mark.parametrize(
    ("imports", "given", "prepare", "last"),
    [
        ("from accelerate import Accelerator", "acc", ALL, "train(Accelerator(cpu=True))"),
        ("", "acc", ALL, ""),
        ("from lightning.fabric import Fabric", "acc", EACH, "train(Fabric(accelerator='cpu'))"),
    ],
    ids=["accelerate", "an argument", "fabric"],
)
def test_what_is_prepared_is_what_it_was(imports: str, given: str, prepare: str, last: str) -> None:
    assert told(PREPARED.format(imports, given, prepare, last)) == [("GG106", 14 + prepare.count("\n"))]


def test_an_engine_of_deepspeed_calls_and_trains_the_module_it_was_given() -> None:
    text = """
    import torch, deepspeed
    from torch import nn

    net = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.Linear(4, 1))
    engine, opt, _, _ = deepspeed.initialize(model=net, optimizer=torch.optim.SGD(net.parameters(), lr=0.1))
    for _ in range(3):
        first, second = engine(torch.randn(2, 3)).mean(), engine(torch.randn(2, 3)).square().mean()
        engine.backward(first)
        engine.step()
        engine.backward(second)
        engine.step()
    """
    assert told(text) == [("GG106", 10)]
