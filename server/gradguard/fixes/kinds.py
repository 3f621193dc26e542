"""Which function writes the edits of which kind of plan. Loads libcst."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gradguard.findings import FixPlan
from gradguard.fixes import (
    clones,
    comments,
    contexts,
    devices,
    evaluation,
    graph,
    indexed,
    inplace,
    modes,
    moves,
    reads,
    rows,
    writes,
)
from gradguard.fixes.edit import Edit
from gradguard.source.text import Source

Maker = Callable[[FixPlan, Source], "tuple[Edit, ...] | None"]

KINDS: Mapping[str, Maker] = {
    "out-of-place": writes.out_of_place,
    "clone-before": writes.clone_before,
    "insert-before": writes.insert_before,
    "return-gradient": writes.return_gradient,
    "stack-rows": rows.stack_rows,
    "copy-array": clones.copy_array,
    "drop-inplace": writes.drop_inplace,
    "masked-write": indexed.masked_write,
    "index-put": indexed.index_put,
    "clone": clones.clone_expression,
    "detach-kept": graph.detach,
    "detach-after": graph.detach_after,
    "keep-graph": graph.keep_graph,
    "sum-losses": graph.sum_losses,
    "sum-backwards": graph.sum_backwards,
    "drop-retain-graph": graph.drop_retain_graph,
    "set-flag": graph.set_flag,
    "save-for-backward": contexts.save_for_backward,
    "clamp": reads.clamp,
    "stack": graph.stack,
    "no-grad": modes.under_mode,
    "decorate": modes.decorate,
    "record": modes.record,
    "inference-mode": modes.under_inference,
    "no-grad-rest": evaluation.no_grad_rest,
    "relax-inference": modes.relax_inference,
    "move-after": moves.move_after,
    "item-after-loop": reads.item_after_loop,
    "guard-read": reads.guard_read,
    "log-lazily": reads.log_lazily,
    "make-on-device": devices.make_on_device,
    "copy-before-loop": devices.copy_before_loop,
    "make-in-place": inplace.make_in_place,
    "add-inplace": inplace.add_flag,
    "remove-ignore": comments.remove_ignore,
}
"""What a plan may ask for."""
