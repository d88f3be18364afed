"""A generator of images: transposed convolutions and batch norm (DCGAN)."""

import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self, latent=128, width=64):
        super().__init__()
        layers, before = [], latent
        for i, after in enumerate((8 * width, 4 * width, 2 * width, width)):
            layers += [nn.ConvTranspose2d(before, after, 4, 2 if i else 1, 1 if i else 0, bias=False)]
            layers += [nn.BatchNorm2d(after), nn.LeakyReLU(0.2, inplace=True)]
            before = after
        self.layers = nn.Sequential(*layers, nn.ConvTranspose2d(before, 3, 4, 2, 1), nn.Tanh())

    def forward(self, z):
        return self.layers(z[:, :, None, None])


def dcgan():
    return Generator(), {"z": torch.randn(2, 128)}
