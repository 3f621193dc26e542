# A GAN in which both losses are made before the first step.
import torch
from torch import nn

generator = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
critic = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
generator_opt = torch.optim.Adam(generator.parameters(), lr=1e-3)
critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-3)

for step in range(3):
    real, fake = torch.rand(5, 4), generator(torch.randn(5, 8))
    critic_loss = critic(fake.detach()).mean() - critic(real).mean()
    generator_loss = -critic(fake).mean()

    critic_opt.zero_grad()
    critic_loss.backward()
    critic_opt.step()  # expect: GG106

    generator_opt.zero_grad()
    generator_loss.backward()
    generator_opt.step()
