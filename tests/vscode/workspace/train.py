"""A small training script with two mistakes."""

import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.inner = nn.Linear(8, width)
        self.outer = nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = torch.sigmoid(self.inner(x))
        gate.mul_(0.5)
        return self.outer(gate)


def train(steps: int = 100) -> torch.Tensor:
    net = Gate()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    total = torch.zeros(())
    for _ in range(steps):
        loss = net(torch.randn(16, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
    return total / steps


if __name__ == "__main__":
    print(train())
