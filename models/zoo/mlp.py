"""A multi-layer perceptron with batch norm and dropout, on tabular rows."""

import torch
from torch import nn


class MLP(nn.Module):
    def __init__(self, features=512, hidden=4096, classes=1000, p=0.1):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(features, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(p),
            nn.Linear(hidden, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(p),
            nn.Linear(hidden, classes),
        )

    def forward(self, x):
        return self.layers(x)


def mlp():
    return MLP(), {"x": torch.randn(2, 512)}
