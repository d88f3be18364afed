"""ConvNeXt-tiny: depthwise 7x7, channels last layer norm, layer scale, stochastic depth."""

import torch
from torch import nn


class LayerNorm2d(nn.LayerNorm):
    def forward(self, x):
        x = x.permute(0, 2, 3, 1)
        x = nn.functional.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)
        return x.permute(0, 3, 1, 2)


class Block(nn.Module):
    def __init__(self, channels, drop):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.expand, self.project = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)
        self.scale = nn.Parameter(torch.full((channels, 1, 1), 1e-6))
        self.drop = drop

    def drop_path(self, x):
        if not self.training or self.drop == 0.0:
            return x
        keep = 1.0 - self.drop
        noise = torch.empty(x.shape[0], 1, 1, 1, dtype=x.dtype, device=x.device).bernoulli_(keep)
        noise.div_(keep)
        return x * noise

    def forward(self, x):
        out = self.depthwise(x).permute(0, 2, 3, 1)
        out = self.project(nn.functional.gelu(self.expand(self.norm(out))))
        out = self.scale * out.permute(0, 3, 1, 2)
        return x + self.drop_path(out)


class ConvNeXt(nn.Module):
    def __init__(self, depths=(3, 3, 9, 3), widths=(96, 192, 384, 768), drop=0.1, classes=1000):
        super().__init__()
        layers, done = [nn.Conv2d(3, widths[0], 4, 4), LayerNorm2d(widths[0], eps=1e-6)], 0
        for i, (depth, width) in enumerate(zip(depths, widths)):
            if i:
                layers += [LayerNorm2d(widths[i - 1], eps=1e-6), nn.Conv2d(widths[i - 1], width, 2, 2)]
            for _ in range(depth):
                layers.append(Block(width, drop * done / (sum(depths) - 1)))
                done += 1
        self.features = nn.Sequential(*layers)
        self.norm, self.head = nn.LayerNorm(widths[-1], eps=1e-6), nn.Linear(widths[-1], classes)

    def forward(self, x):
        x = self.features(x)
        x = x.mean((2, 3))
        return self.head(self.norm(x))


def convnext_tiny():
    return ConvNeXt(), {"x": torch.randn(2, 3, 224, 224)}
