# MAML: the step of the inner loop cuts the way to the parameters that the outer one trains.
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call


def inner_update(model, x, y, lr=0.1):
    fast = dict(model.named_parameters())
    loss = F.mse_loss(functional_call(model, fast, x), y)
    grads = torch.autograd.grad(loss, list(fast.values()))
    return {name: p.data - lr * g for (name, p), g in zip(fast.items(), grads)}  # expect: GG205


model = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 1))
meta_opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for _ in range(3):
    phase = torch.rand(1) * 3
    support, query = torch.randn(5, 1), torch.randn(5, 1)
    fast = inner_update(model, support, torch.sin(support + phase))
    meta_loss = F.mse_loss(functional_call(model, fast, query), torch.sin(query + phase))
    meta_opt.zero_grad()
    meta_loss.backward()
    meta_opt.step()
