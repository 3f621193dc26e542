"""What is handed back as it was given: `prepare` and `setup` of accelerate, Fabric, DeepSpeed, Ray Train and torch itself."""

from __future__ import annotations

import ast

from gradguard.engine.domain.arguments import Call
from gradguard.engine.domain.values import ContextV, Frame, Instance, NativeV, TorchName, TupleV, Value
from gradguard.engine.models import modules, optim, others
from gradguard.engine.models.registry import Registry
from gradguard.engine.state.run import Run

MODELS = Registry()


@MODELS.external_function("accelerate.Accelerator")
def _accelerator(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    return Instance(TorchName("accelerate.Accelerator"), made=call.place)


@MODELS.external_function("lightning.Fabric", "lightning.fabric.Fabric", "lightning_fabric.Fabric")
def _fabric(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    return Instance(TorchName("lightning.Fabric"), made=call.place)


def _prepare(run: Run, frame: Frame, owner: Instance, call: Call, node: ast.AST) -> Value:
    return others.given_back(run, call)


def _first(run: Run, frame: Frame, owner: Instance, call: Call, node: ast.AST) -> Value:
    return call.args[0] if call.args else run.fresh()


def _backward(run: Run, frame: Frame, owner: Instance, call: Call, node: ast.AST) -> Value:
    return others.differentiate(run, call, node)


def _context(run: Run, frame: Frame, owner: Instance, call: Call, node: ast.AST) -> Value:
    return ContextV("")


def _autocast(run: Run, frame: Frame, owner: Instance, call: Call, node: ast.AST) -> Value:
    return ContextV("autocast", True, place=call.place)


def _quiet(run: Run, frame: Frame, owner: Instance, call: Call, node: ast.AST) -> Value:
    return run.fresh()


MODELS.methods_of("Accelerator", {
    "prepare": _prepare, "prepare_model": _first, "prepare_optimizer": _first, "prepare_data_loader": _first, "unwrap_model": _first,
    "backward": _backward, "accumulate": _context, "no_sync": _context, "autocast": _autocast, "clip_grad_norm_": _quiet,
    "clip_grad_value_": _quiet, "print": _quiet, "wait_for_everyone": _quiet, "gather": _first, "gather_for_metrics": _first,
    "reduce": _first, "log": _quiet,
})  # fmt: skip
MODELS.methods_of("Fabric", {
    "setup": _prepare, "setup_module": _first, "setup_optimizers": _prepare, "setup_dataloaders": _prepare, "backward": _backward,
    "no_backward_sync": _context, "autocast": _autocast, "clip_gradients": _quiet, "launch": _quiet, "print": _quiet, "barrier": _quiet,
    "log": _quiet, "log_dict": _quiet, "seed_everything": _quiet,
})  # fmt: skip


@MODELS.external_function("deepspeed.initialize")
def _deepspeed(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    """`engine, optimizer, loader, scheduler = deepspeed.initialize(model=..., optimizer=...)`."""
    model, optimizer = call.kwargs.get("model", call.get(1, "model")), call.kwargs.get("optimizer")
    if not isinstance(model, Instance):
        return run.fresh()
    engine = Instance(TorchName("torch.nn.DataParallel"), {"module": model}, made=call.place)

    def forward(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
        return modules.call_module(run, frame, model, call, node)

    def differentiate(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
        return others.differentiate(run, call, node)

    def step(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
        """The engine clears the gradients of what it has stepped."""
        if isinstance(optimizer, Instance):
            optim.step(run, frame, optimizer, Call([], {}, call.place, [], {}), node)
            optim.clear_gradients(run, optim.parameters(optimizer), Call([], {}, call.place, [], {}), node)
        return None

    engine.attributes["forward"] = NativeV(forward, "forward")
    engine.attributes["backward"] = NativeV(differentiate, "backward")
    engine.attributes["step"] = NativeV(step, "step")
    given = optimizer if optimizer is not None else run.fresh()
    return TupleV((engine, given, call.kwargs.get("training_data", run.fresh()), run.fresh()))


@MODELS.external_function("ray.train.torch.prepare_model", "ray.train.torch.prepare_data_loader", "ray.train.torch.prepare_optimizer")  # fmt: skip
@MODELS.torch_function("torch.distributed.fsdp.fully_shard", "torch.distributed._composable.fsdp.fully_shard", "torch.distributed._composable.replicate", "torch.distributed.tensor.parallel.parallelize_module")  # fmt: skip
def _itself(run: Run, frame: Frame, call: Call, node: ast.AST) -> Value:
    return call.args[0] if call.args else next(iter(call.kwargs.values()), None)
