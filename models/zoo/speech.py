"""A speech encoder: one-dimensional convolutions, then a transformer with fixed sinusoidal positions."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from vit import Block


class SpeechEncoder(nn.Module):
    def __init__(self, mels=80, width=768, heads=12, layers=3, positions=1500, classes=51865):
        super().__init__()
        self.conv1 = nn.Conv1d(mels, width, 3, padding=1)
        self.conv2 = nn.Conv1d(width, width, 3, stride=2, padding=1)
        angles = torch.arange(positions)[:, None] * torch.exp(torch.arange(width // 2) * (-math.log(10000.0) / (width // 2 - 1)))
        self.register_buffer("position", torch.cat([angles.sin(), angles.cos()], 1))
        self.blocks, self.norm = nn.ModuleList(Block(width, heads) for _ in range(layers)), nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, mel):
        x = F.gelu(self.conv1(mel))
        x = F.gelu(self.conv2(x))
        x = x.transpose(1, 2) + self.position
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def speech_encoder():
    return SpeechEncoder(), {"mel": torch.randn(2, 80, 3000)}
