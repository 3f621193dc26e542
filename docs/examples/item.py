# A loss as a number, as a tensor without its history, and as a tensor with it.
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(4, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
detached = torch.zeros((), device=device)
numbers = []
for step in range(10):
    loss = model(torch.rand(8, 4, device=device)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss  # expect: GG201
    detached += loss.detach()  # keeps no graph, and nobody waits
    numbers.append(loss.item())  # expect: GG301
print(total, detached, numbers)
