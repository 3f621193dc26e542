"""PyTorch Lightning, under each of its package names."""

from __future__ import annotations

import ast

from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.values import Frame, Instance, ListV, TorchName, Value
from gradguard.engine.models.frameworks.schedule import Phase, Schedule, drive, optimizers
from gradguard.engine.models.registry import Registry
from gradguard.engine.state.run import Run

MODELS = Registry()

MODULE = Schedule(
    ("LightningModule",),
    (
        Phase(
            "training_step",
            differentiates=True,
            before=("on_train_start", "on_train_epoch_start"),
            each=("on_train_batch_end",),
            after=("on_train_epoch_end", "training_epoch_end"),
        ),
        Phase("validation_step", grad=False, after=("on_validation_epoch_end", "validation_epoch_end")),
        Phase("test_step", grad=False, after=("on_test_epoch_end", "test_epoch_end")),
        Phase("predict_step", grad=False),
    ),
    optimizers="configure_optimizers",
    manual="automatic_optimization",
)

_PACKAGES = ("lightning", "lightning.pytorch", "pytorch_lightning")
_PHASES = {
    "fit": ("validation_step", "training_step"),
    "validate": ("validation_step",),
    "test": ("test_step",),
    "predict": ("predict_step",),
}


@MODELS.external_function(*(f"{home}.Trainer" for home in _PACKAGES))
def _trainer(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    return Instance(TorchName("lightning.Trainer"), made=call.place)


def _runs(run: Run, frame: Frame, trainer: Instance, call: Call, node: ast.AST) -> Value:
    model, data = call.get(0, "model"), call.get(1, "train_dataloaders")
    if isinstance(model, Instance):
        for name in _PHASES[call.name]:
            phase = MODULE.phase(name)
            if phase is not None:
                drive(run, frame, model, MODULE, phase, data if name == "training_step" else None, node)
    return run.fresh()


MODELS.methods_of("Trainer", dict.fromkeys(_PHASES, _runs))


def _optimizers(run: Run, frame: Frame, owner: Instance, call: Call, node: ast.AST) -> Value:
    """`self.optimizers()`: one by itself, several as a list, as `configure_optimizers` has made them."""
    held: list[Value] = [*optimizers(run, frame, owner, MODULE, node)]
    if not held:
        return run.fresh()
    return held[0] if len(held) == 1 else ListV(held)


MODELS.methods_of("LightningModule", {"optimizers": _optimizers})
