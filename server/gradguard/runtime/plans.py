"""What the watcher must know about an operator: which arguments it writes and whether the host waits for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

READS = {
    "_local_scalar_dense",
    "nonzero",
    "masked_select",
    "_unique2",
    "unique_consecutive",
    "unique_dim",
    "equal",
}
MASKED = {"index", "index_put", "index_put_", "_index_put_impl_"}
MASKS = (torch.bool, torch.uint8)
# Running statistics are written although the schema does not say so: positions of mean, variance and training flag.
STATISTICS = {
    "native_batch_norm": (3, 4, 5),
    "cudnn_batch_norm": (3, 4, 5),
    "miopen_batch_norm": (3, 4, 5),
}
# Their schemas do not say that they write what comes first.
COLLECTIVES = {
    "allreduce_", "broadcast_", "reduce_", "scatter_", "alltoall_base_", "alltoall_", "allgather_", "_allgather_base_", "allreduce_coalesced_",
    "reduce_scatter_", "_reduce_scatter_base_", "allgather_into_tensor_coalesced_", "reduce_scatter_tensor_coalesced_", "recv_",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Plan:
    """positions: arguments that are tensors. lists: arguments that are lists of tensors. writes: positions written.

    written_names: keyword arguments written (`out=`). foreach_write: it writes a list of tensors, whose versions torch
    forgets to raise below a dispatch mode. composite: it is only made of others. reads_values: it is more than a view, and
    more than a new tensor of the same size.
    """

    name: str
    positions: tuple[int, ...]
    lists: tuple[int, ...]
    writes: tuple[int, ...]
    written_names: tuple[str, ...]
    reads_host: bool
    masked: bool
    statistics: tuple[int, int, int] | None
    drops: bool
    lifts: bool
    foreach_write: bool
    copies: bool
    composite: bool
    reads_values: bool


def plan_for(func: Any) -> Plan:
    """Reads the schema of an operator overload."""
    schema = func._schema
    name = schema.name.rpartition("::")[2]
    positions: list[int] = []
    lists: list[int] = []
    writes: list[int] = []
    names: list[str] = []
    for index, argument in enumerate(schema.arguments):
        text = str(argument.type)
        if "Tensor" in text:
            (lists if text.startswith("List") or "[]" in text else positions).append(index)
        if argument.alias_info is not None and argument.alias_info.is_write:
            if argument.kwarg_only:
                names.append(argument.name)
            else:
                writes.append(index)
    if name in COLLECTIVES:
        writes.append(0)
    reads = name in READS or (name == "repeat_interleave" and func._overloadname == "Tensor")
    return Plan(
        name,
        tuple(positions),
        tuple(lists),
        tuple(writes),
        tuple(names),
        reads,
        name in MASKED,
        STATISTICS.get(name),
        name in ("_local_scalar_dense", "detach"),
        name in ("lift_fresh", "lift_fresh_copy"),
        name.startswith("_foreach_") and bool(writes),
        name in ("_to_copy", "copy_"),
        _is_composite(func.name()),
        not (name.endswith("_like") or name.startswith("new_") or any(map(_is_view, schema.returns))),
    )


def _is_view(returned: Any) -> bool:
    return returned.alias_info is not None and not returned.alias_info.is_write


def _is_composite(name: str) -> bool:
    """Whether torch makes none of the operator's views and counts none of its writes itself."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    return has_kernel(name, "CompositeImplicitAutograd") and not has_kernel(name, "ADInplaceOrView")


def copies_to_host(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a copy moves values from a device to the host, for which the host waits."""
    source, target = _ends(args, kwargs)
    if not target or kwargs.get("non_blocking"):
        return False
    return target == "cpu" and source not in ("cpu", "meta")


def copies_to_device(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an operator that waits is a copy of the host's values to a device."""
    source, target = _ends(args, kwargs)
    return source == "cpu" and target not in ("", "cpu", "meta")


def _ends(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, str]:
    """Types of the devices that a copy is made from and to; empty where an operator says none."""
    if not args or not isinstance(args[0], torch.Tensor):
        return "", ""
    target = kwargs.get("device")
    if target is None and len(args) > 1 and isinstance(args[1], torch.Tensor):
        return args[1].device.type, args[0].device.type
    return args[0].device.type, torch.device(target).type if target is not None else ""


def masks_read(plan: Plan, args: tuple[Any, ...]) -> bool:
    """Whether an indexing operator has to learn from a mask how many elements it selects."""
    indices = args[1]
    if not any(isinstance(i, torch.Tensor) and i.dtype in MASKS for i in indices):
        return False
    # One value for all selected elements takes the masked_fill path, which knows its size.
    return plan.name == "index" or args[2].numel() != 1


def schema_target(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The tensors an operator writes to."""
    found: list[Any] = []
    for index in plan.writes:
        if index < len(args):
            value = args[index]
            for one in value if isinstance(value, (list, tuple)) else [value]:
                # A gather gives a list for each of its tensors.
                found.extend(one if isinstance(one, (list, tuple)) else [one])
    for name in plan.written_names:
        value = kwargs.get(name)
        if value is not None:
            found.extend(value if isinstance(value, (list, tuple)) else [value])
    if plan.statistics is not None:
        mean, variance, training = plan.statistics
        if len(args) > training and args[training]:
            found.extend((args[mean], args[variance]))
    return [t for t in found if isinstance(t, torch.Tensor)]
