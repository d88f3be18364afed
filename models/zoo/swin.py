"""Attention in shifted windows with a learned relative position bias, as in Swin."""

import torch
from torch import nn
from torch.nn import functional as F


class WindowAttention(nn.Module):
    def __init__(self, width, heads, window):
        super().__init__()
        self.heads, self.window = heads, window
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.bias_table = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads) * 0.02)
        where = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        offset = (where[:, :, None] - where[:, None, :]).permute(1, 2, 0) + window - 1
        self.register_buffer("bias_index", (offset[..., 0] * (2 * window - 1) + offset[..., 1]).flatten())

    def forward(self, x, mask):
        windows, length, width = x.shape
        qkv = self.qkv(x).reshape(windows, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        bias = self.bias_table[self.bias_index].view(length, length, self.heads)
        bias = bias.permute(2, 0, 1).unsqueeze(0)
        scores = (q * (width // self.heads) ** -0.5) @ k.transpose(-2, -1) + bias
        if mask is not None:
            scores = scores.view(-1, mask.shape[0], self.heads, length, length) + mask[None, :, None]
            scores = scores.view(-1, self.heads, length, length)
        out = F.softmax(scores, dim=-1) @ v
        return self.proj(out.transpose(1, 2).reshape(windows, length, width))


class Block(nn.Module):
    def __init__(self, width, heads, size, window, shift):
        super().__init__()
        self.size, self.window, self.shift = size, window, shift if size > window else 0
        self.norm1, self.attention = nn.LayerNorm(width), WindowAttention(width, heads, window)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.register_buffer("mask", self.shift_mask() if self.shift else None)

    def shift_mask(self):
        region = torch.zeros(self.size, self.size)
        borders = (slice(0, -self.window), slice(-self.window, -self.shift), slice(-self.shift, None))
        for i, rows in enumerate(borders):
            for j, columns in enumerate(borders):
                region[rows, columns] = 3 * i + j
        region = self.partition(region[None, :, :, None]).squeeze(-1)
        return (region[:, None, :] != region[:, :, None]).float() * -100.0

    def partition(self, x):
        batch, height, width, channels = x.shape
        x = x.view(batch, height // self.window, self.window, width // self.window, self.window, channels)
        return x.transpose(2, 3).reshape(-1, self.window**2, channels)

    def forward(self, x):
        batch, height, width, channels = x.shape
        out = self.norm1(x)
        if self.shift:
            out = torch.roll(out, (-self.shift, -self.shift), (1, 2))
        out = self.attention(self.partition(out), self.mask)
        out = out.view(batch, height // self.window, width // self.window, self.window, self.window, channels)
        out = out.transpose(2, 3).reshape(batch, height, width, channels)
        if self.shift:
            out = torch.roll(out, (self.shift, self.shift), (1, 2))
        x = x + out
        return x + self.mlp(self.norm2(x))


class PatchMerging(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.reduction = nn.LayerNorm(4 * width), nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x):
        x = torch.cat([x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]], -1)
        return self.reduction(self.norm(x))


class Swin(nn.Module):
    def __init__(self, width=96, depths=(2, 2, 2, 2), heads=(3, 6, 12, 24), window=7, image=224, classes=1000):
        super().__init__()
        self.patches, self.norm0 = nn.Conv2d(3, width, 4, 4), nn.LayerNorm(width)
        layers, size = [], image // 4
        for i, (depth, head) in enumerate(zip(depths, heads)):
            if i:
                layers.append(PatchMerging(width))
                width, size = 2 * width, size // 2
            layers += [Block(width, head, size, window, window // 2 if j % 2 else 0) for j in range(depth)]
        self.layers = nn.Sequential(*layers)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x):
        x = self.norm0(self.patches(x).permute(0, 2, 3, 1))
        x = self.norm(self.layers(x))
        return self.head(x.mean((1, 2)))


def swin_small():
    return Swin(), {"x": torch.randn(2, 3, 224, 224)}
