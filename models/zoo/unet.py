"""A U-Net for segmentation: skip connections across the whole network, transposed convolutions."""

import torch
from torch import nn


class DoubleConv(nn.Sequential):
    def __init__(self, before, after):
        super().__init__(
            nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU(inplace=True),
            nn.Conv2d(after, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU(inplace=True),
        )


class UNet(nn.Module):
    def __init__(self, widths=(64, 128, 256, 512), classes=21):
        super().__init__()
        self.down, self.up, self.join = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        before = 3
        for width in widths:
            self.down.append(DoubleConv(before, width))
            before = width
        self.bottom = DoubleConv(before, 2 * before)
        for width in reversed(widths):
            self.up.append(nn.ConvTranspose2d(2 * width, width, 2, 2))
            self.join.append(DoubleConv(2 * width, width))
        self.pool, self.head = nn.MaxPool2d(2), nn.Conv2d(widths[0], classes, 1)

    def forward(self, x):
        skips = []
        for down in self.down:
            x = down(x)
            skips.append(x)
            x = self.pool(x)
        x = self.bottom(x)
        for up, join in zip(self.up, self.join):
            x = up(x)
            x = torch.cat([skips.pop(), x], 1)
            x = join(x)
        return self.head(x)


def unet():
    return UNet(), {"x": torch.randn(2, 3, 256, 256)}
