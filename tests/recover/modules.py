"""The modules whose exports lie in cases.tar.xz: `make_cases` runs models/export.py on each, both exporters, both modes."""
import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        out = self.conv1(x)
        out = self.bn1(out)
        out = self.relu(out)
        out = self.conv2(out)
        out = self.bn2(out)
        out += x
        return self.relu(out)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.layer = nn.Sequential(Block(8), Block(8))
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        x = self.layer(self.stem(x))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class RMSNorm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        dtype = x.dtype
        x = x.to(torch.float32)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * x.to(dtype)


class Attention(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(size, 3 * size, bias=False)
        self.o = nn.Linear(size, size, bias=False)

    def forward(self, x):
        batch, length, size = x.shape
        q, k, v = self.qkv(x).split(size, dim=-1)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.transpose(1, 2).reshape(batch, length, size))


class Decoder(nn.Module):
    def __init__(self, vocabulary=50, size=32):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, size)
        self.norm1, self.norm2 = RMSNorm(size), RMSNorm(size)
        self.attn = Attention(size, 4)
        self.gate, self.up, self.down = nn.Linear(size, 64), nn.Linear(size, 64), nn.Linear(64, size)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(size, vocabulary, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, ids):
        x = self.wte(ids)
        x = x + self.attn(self.norm1(x))
        h = self.norm2(x)
        x = x + self.drop(self.down(F.silu(self.gate(h)) * self.up(h)))
        return self.head(x)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(40, 16)
        self.rnn = nn.LSTM(16, 24, num_layers=2, batch_first=True)
        self.out = nn.Linear(24, 40)

    def forward(self, ids):
        y, _ = self.rnn(self.embed(ids))
        return self.out(y)


def residual():
    return Residual(), (torch.randn(2, 3, 16, 16),)


def decoder():
    return Decoder(), (torch.randint(0, 50, (2, 6)),)


def encoder():
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, activation="gelu", batch_first=True, norm_first=True)
    return nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), (torch.randn(2, 6, 32),), {"src": {0: "batch"}}


def perceptron():
    layers = nn.Linear(12, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 5)
    return nn.Sequential(*layers), (torch.randn(2, 12),), {"input": {0: "batch"}}


def recurrent():
    return Recurrent(), (torch.randint(0, 40, (2, 6)),)


class Speaker(nn.Module):
    """A language model whose head is its embedding, or another matrix of the same shape."""

    def __init__(self, tied):
        super().__init__()
        self.embed = nn.Embedding(96, 32)
        self.mix = nn.Linear(32, 32)
        self.head = nn.Linear(32, 96, bias=False)
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, tokens):
        return self.head(torch.tanh(self.mix(self.embed(tokens))))


def tied():
    return Speaker(True), {"tokens": torch.zeros(2, 6, dtype=torch.long)}


def untied():
    return Speaker(False), {"tokens": torch.zeros(2, 6, dtype=torch.long)}
