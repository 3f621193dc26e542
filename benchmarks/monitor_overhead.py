"""What the monitor costs: CPU seconds per training step on one core, plain, under `--light`, and fully watched.

Prints one row per model and mode: median milliseconds per step over several rounds, and the factor over plain.
Rounds of the modes take turns, so that a busy machine slows all of them alike; CPU time is not wall time.

    python benchmarks/monitor_overhead.py [--steps 300] [--rounds 7]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "server"))

import torch
from torch import nn

from gradguard.runtime.watched_run import WatchedRun

Step = Callable[[], None]


def mlp() -> Step:
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    return _step(model, torch.randn(64, 64), torch.randint(0, 10, (64,)))


def convnet() -> Step:
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip
    return _step(model, torch.randn(16, 3, 16, 16), torch.randint(0, 10, (16,)))


def transformer() -> Step:
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    model = nn.Sequential(nn.Embedding(100, 64), nn.TransformerEncoder(layer, 2), _Pool(), nn.Linear(64, 10))
    return _step(model, torch.randint(0, 100, (16, 24)), torch.randint(0, 10, (16,)))


class _Pool(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(1)


def _step(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Step:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()

    return step


def seconds_per_step(step: Step, steps: int, mode: str) -> float:
    run = None if mode == "plain" else WatchedRun(light=mode == "light", always_user=(__file__,))
    if run is not None:
        run.start(sys._getframe())
    began = time.process_time()
    for _ in range(steps):
        step()
    elapsed = time.process_time() - began
    if run is not None:
        run.stop()
        if run.troubles or run.findings.sorted():
            raise RuntimeError(
                f"the monitor should have nothing to say: {run.troubles or run.findings.sorted()}"
            )
    return elapsed / steps


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, {options.rounds} rounds of {options.steps} steps, median")
    for build in (mlp, convnet, transformer):
        torch.manual_seed(0)
        step = build()
        for _ in range(20):
            step()
        times: dict[str, list[float]] = {"plain": [], "light": [], "full": []}
        for _ in range(options.rounds):
            for mode, found in times.items():
                found.append(seconds_per_step(step, options.steps, mode))
        plain = statistics.median(times["plain"])
        for mode, found in times.items():
            median = statistics.median(found)
            print(f"{build.__name__:12} {mode:6} {median * 1e3:8.3f} ms  x{median / plain:.2f}")


if __name__ == "__main__":
    main()
