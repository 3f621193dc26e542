# An LSTM whose state goes from batch to batch with all its history.
import torch
from torch import nn

lstm, head = nn.LSTM(3, 8), nn.Linear(8, 1)
optimizer = torch.optim.Adam([*lstm.parameters(), *head.parameters()], lr=1e-3)
state = (torch.zeros(1, 2, 8), torch.zeros(1, 2, 8))
for batch in range(3):
    out, state = lstm(torch.rand(5, 2, 3), state)  # expect: GG203
    loss = head(out).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
