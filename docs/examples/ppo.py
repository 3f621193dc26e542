# PPO: probabilities of the old policy are targets, and advantages are made ready in place.
import torch
from torch import nn

policy, value = nn.Linear(4, 2), nn.Linear(4, 1)
optimizer = torch.optim.Adam([*policy.parameters(), *value.parameters()], lr=1e-3)
states, actions, returns = torch.rand(16, 4), torch.randint(0, 2, (16,)), torch.rand(16)
old = torch.distributions.Categorical(logits=policy(states)).log_prob(actions).detach()
for epoch in range(3):
    advantage = returns - value(states).squeeze(1)
    value_loss = advantage.square().mean()
    advantage -= advantage.mean()  # expect: GG101
    new = torch.distributions.Categorical(logits=policy(states)).log_prob(actions)
    ratio = (new - old).exp()
    clipped = ratio.clamp(0.8, 1.2)
    policy_loss = -torch.min(ratio * advantage.detach(), clipped * advantage.detach()).mean()
    optimizer.zero_grad()
    (policy_loss + value_loss).backward()
    optimizer.step()
