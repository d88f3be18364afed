"""A U-Net that removes noise: time embedding, group norm, self attention and cross attention to a text."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class ResBlock(nn.Module):
    def __init__(self, before, after, time_width):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(32, before), nn.Conv2d(before, after, 3, padding=1)
        self.time = nn.Linear(time_width, after)
        self.norm2, self.conv2 = nn.GroupNorm(32, after), nn.Conv2d(after, after, 3, padding=1)
        self.skip = nn.Conv2d(before, after, 1) if before != after else nn.Identity()

    def forward(self, x, time):
        out = self.conv1(F.silu(self.norm1(x)))
        out = out + self.time(F.silu(time))[:, :, None, None]
        out = self.conv2(F.silu(self.norm2(out)))
        return out + self.skip(x)


class Attention(nn.Module):
    def __init__(self, width, context_width, heads):
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(width, width, bias=False)
        self.to_k, self.to_v = nn.Linear(context_width, width, bias=False), nn.Linear(context_width, width, bias=False)
        self.to_out = nn.Linear(width, width)

    def forward(self, x, context):
        q = self.to_q(x).unflatten(2, (self.heads, -1)).transpose(1, 2)
        k = self.to_k(context).unflatten(2, (self.heads, -1)).transpose(1, 2)
        v = self.to_v(context).unflatten(2, (self.heads, -1)).transpose(1, 2)
        out = F.scaled_dot_product_attention(q, k, v)
        return self.to_out(out.transpose(1, 2).flatten(2))


class SpatialTransformer(nn.Module):
    def __init__(self, width, context_width, heads=8):
        super().__init__()
        self.norm, self.proj_in, self.proj_out = nn.GroupNorm(32, width), nn.Linear(width, width), nn.Linear(width, width)
        self.norm1, self.attn1 = nn.LayerNorm(width), Attention(width, width, heads)
        self.norm2, self.attn2 = nn.LayerNorm(width), Attention(width, context_width, heads)
        self.norm3, self.gate, self.out = nn.LayerNorm(width), nn.Linear(width, 8 * width), nn.Linear(4 * width, width)

    def forward(self, x, text):
        tokens = self.proj_in(self.norm(x).flatten(2).transpose(1, 2))
        out = self.norm1(tokens)
        tokens = tokens + self.attn1(out, out)
        tokens = tokens + self.attn2(self.norm2(tokens), text)
        value, gate = self.gate(self.norm3(tokens)).chunk(2, dim=-1)
        tokens = tokens + self.out(value * F.gelu(gate))
        out = self.proj_out(tokens).transpose(1, 2).reshape(x.shape)
        return x + out


class Upsample(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x):
        return self.conv(F.interpolate(x, scale_factor=2.0, mode="nearest"))


class DiffusionUNet(nn.Module):
    def __init__(self, channels=4, width=320, multiples=(1, 2, 4), context_width=768):
        super().__init__()
        self.width = width
        time_width = 4 * width
        self.time = nn.Sequential(nn.Linear(width, time_width), nn.SiLU(), nn.Linear(time_width, time_width))
        self.conv_in = nn.Conv2d(channels, width, 3, padding=1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        before, skips = width, [width]
        for multiple in multiples:
            after = width * multiple
            self.down.append(nn.ModuleList([ResBlock(before, after, time_width), SpatialTransformer(after, context_width),
                                            nn.Conv2d(after, after, 3, stride=2, padding=1)]))
            before = after
            skips += [after, after]
        self.middle = nn.ModuleList([ResBlock(before, before, time_width), SpatialTransformer(before, context_width),
                                     ResBlock(before, before, time_width)])
        for multiple in reversed(multiples):
            after = width * multiple
            self.up.append(nn.ModuleList([ResBlock(before + skips.pop(), after, time_width), Upsample(after),
                                          ResBlock(after + skips.pop(), after, time_width),
                                          SpatialTransformer(after, context_width)]))
            before = after
        self.norm_out, self.conv_out = nn.GroupNorm(32, before), nn.Conv2d(before, channels, 3, padding=1)

    def embed(self, timestep):
        half = self.width // 2
        frequencies = torch.exp(torch.arange(half, device=timestep.device) * (-math.log(10000.0) / half))
        angles = timestep[:, None].float() * frequencies[None]
        return self.time(torch.cat([angles.cos(), angles.sin()], dim=-1))

    def forward(self, sample, timestep, text):
        time = self.embed(timestep)
        x = self.conv_in(sample)
        skips = []
        for block, transformer, shrink in self.down:
            x = transformer(block(x, time), text)
            skips.append(x)
            x = shrink(x)
            skips.append(x)
        first, transformer, second = self.middle
        x = second(transformer(first(x, time), text), time)
        for first, grow, second, transformer in self.up:
            x = grow(first(torch.cat([x, skips.pop()], dim=1), time))
            x = transformer(second(torch.cat([x, skips.pop()], dim=1), time), text)
        return self.conv_out(F.silu(self.norm_out(x)))


def diffusion_unet():
    inputs = {"sample": torch.randn(2, 4, 64, 64), "timestep": torch.randint(0, 1000, (2,)), "text": torch.randn(2, 77, 768)}
    return DiffusionUNet(), inputs, {name: {0: "batch"} for name in inputs}
