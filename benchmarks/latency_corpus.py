"""Training files of any length, made of the parts that real ones have."""

from __future__ import annotations

HEADER = '''\
"""Train an image model: {seed}."""

import argparse
import math
import os

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import AdamW
from torch.utils.data import DataLoader, Dataset

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
'''

PARTS = (
    '''

class Attention{n}(nn.Module):
    """Multi-head attention with a learned temperature."""

    def __init__(self, dim, heads=8, dropout=0.1):
        super().__init__()
        self.heads = heads
        self.scale = nn.Parameter(torch.ones(heads, 1, 1) / math.sqrt(dim // heads))
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        batch, length, dim = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = q.view(batch, length, self.heads, -1).transpose(1, 2)
        k = k.view(batch, length, self.heads, -1).transpose(1, 2)
        v = v.view(batch, length, self.heads, -1).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) * self.scale
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        weights = self.drop(torch.softmax(scores, dim=-1))
        mixed = (weights @ v).transpose(1, 2).reshape(batch, length, dim)
        return self.out(mixed)
''',
    """

class Block{n}(nn.Module):
    def __init__(self, dim, hidden, dropout=0.1):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.norm2 = nn.LayerNorm(dim)
        self.first = nn.Linear(dim, hidden)
        self.second = nn.Linear(hidden, dim)
        self.drop = nn.Dropout(dropout)
        self.act = nn.GELU()

    def forward(self, x):
        h = self.norm1(x)
        h = self.act(self.first(h))
        h = self.drop(self.second(h))
        x = x + h
        return self.norm2(x)


class Encoder{n}(nn.Module):
    def __init__(self, dim=256, depth=6):
        super().__init__()
        self.stem = nn.Conv2d(3, dim, 16, stride=16)
        self.blocks = nn.ModuleList([Block{n}(dim, 4 * dim) for _ in range(depth)])
        self.head = nn.Linear(dim, 10)

    def forward(self, images):
        x = self.stem(images).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(dim=1))
""",
    '''

def focal_loss{n}(logits, target, gamma=2.0, weight=None):
    """Cross entropy that counts easy examples less."""
    log_p = F.log_softmax(logits, dim=-1)
    p = log_p.exp()
    at_target = p.gather(1, target.unsqueeze(1)).squeeze(1)
    loss = -((1 - at_target) ** gamma) * log_p.gather(1, target.unsqueeze(1)).squeeze(1)
    if weight is not None:
        loss = loss * weight[target]
    return loss.mean()


def gradient_penalty{n}(critic, real, fake):
    alpha = torch.rand(real.size(0), 1, 1, 1, device=real.device)
    mixed = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    score = critic(mixed)
    (grad,) = torch.autograd.grad(score.sum(), mixed, create_graph=True)
    return ((grad.flatten(1).norm(2, dim=1) - 1) ** 2).mean()
''',
    """

class Images{n}(Dataset):
    def __init__(self, root, transform=None):
        self.paths = sorted(os.path.join(root, name) for name in os.listdir(root))
        self.transform = transform

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        image = torch.load(self.paths[index])
        if self.transform is not None:
            image = self.transform(image)
        return image, index % 10
""",
    """

def train_one_epoch{n}(model, loader, optimizer, scheduler=None, clip=1.0):
    model.train()
    running = 0.0
    for step, (images, target) in enumerate(loader):
        images, target = images.to(DEVICE), target.to(DEVICE)
        optimizer.zero_grad(set_to_none=True)
        logits = model(images)
        loss = F.cross_entropy(logits, target, label_smoothing=0.1)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        running += loss.detach()
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}")
    return running / len(loader)


@torch.no_grad()
def evaluate{n}(model, loader):
    model.eval()
    right = total = 0
    for images, target in loader:
        logits = model(images.to(DEVICE))
        right += (logits.argmax(dim=1) == target.to(DEVICE)).sum()
        total += target.numel()
    return (right / total).item()


def main{n}(arguments=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", default="data")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=3e-4)
    options = parser.parse_args(arguments)
    model = Encoder{n}().to(DEVICE)
    loader = DataLoader(Images{n}(options.root), batch_size=64, shuffle=True)
    optimizer = AdamW(model.parameters(), lr=options.lr)
    for epoch in range(options.epochs):
        loss = train_one_epoch{n}(model, loader, optimizer)
        accuracy = evaluate{n}(model, loader)
        print(epoch, loss, accuracy)
""",
)

MISTAKES = """

def warm_up(model, data):
    losses = []
    total = 0
    for batch in data:
        h = torch.sigmoid(model(batch))
        h += 1
        loss = h.mean()
        loss.backward()
        total += loss
        losses.append(loss)
    return total, losses
"""


def training_file(lines: int, seed: int = 0) -> str:
    """A file of about this many lines: at least those, and less than one more part."""
    text = HEADER.format(seed=seed) + MISTAKES
    n = 0
    while text.count("\n") < lines:
        for part in PARTS:
            text += part.replace("{n}", str(n))
            if text.count("\n") >= lines:
                break
        n += 1
    return text + '\n\nif __name__ == "__main__":\n    main0()\n'
