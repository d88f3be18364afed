"""Modules whose exports were read wrongly once, one idea each; `compare` exports and runs them."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def ids(batch=2, length=16):
    return torch.randint(0, 100, (batch, length))


class Tagger(nn.Module):
    def __init__(self, kind, layers):
        super().__init__()
        self.words = nn.Embedding(100, 16)
        self.layers = getattr(nn, kind)(16, 12, layers, batch_first=True, bidirectional=True)
        self.head = nn.Linear(24, 7)

    def forward(self, x):
        hidden, _ = self.layers(self.words(x))
        return self.head(hidden)


def lstm_tagger():
    return Tagger("LSTM", 2), {"x": ids()}


def fixed_tagger():
    """Exported with fixed shapes: the states that start a layer are made of the shape below it."""
    return Tagger("LSTM", 2), {"x": ids()}, {}


def rnn_tagger():
    return Tagger("RNN", 1), {"x": ids()}


class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.bag = nn.EmbeddingBag(100, 16, mode="mean")
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.bag(x))


def embedding_bag():
    return Bags(), {"x": ids()}


class Latent(nn.Module):
    """Two results, of which the loss reads one; chunk, clamp with numbers, Mish."""

    def __init__(self):
        super().__init__()
        self.encode = nn.Conv2d(3, 16, 3, 2, 1)
        self.decode = nn.Sequential(nn.ConvTranspose2d(8, 8, 4, 2, 1), nn.Mish(), nn.Conv2d(8, 3, 3, padding=1))

    def forward(self, x):
        mean, logarithm = self.encode(x).chunk(2, 1)
        deviation = logarithm.clamp(-30, 20).mul(0.5).exp()
        divergence = 0.5 * (mean.pow(2) + logarithm.exp() - 1 - logarithm).sum(dim=[1, 2, 3])
        return self.decode(mean + deviation), divergence


def latent():
    return Latent(), {"x": torch.randn(2, 3, 16, 16)}


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(16, 32), nn.Linear(16, 16)

    def forward(self, x):
        return self.down(F.glu(self.up(x), -1))


def gated():
    return Gated(), {"x": torch.randn(2, 16)}


class Fused(nn.Module):
    """One projection taken apart by unbind, and a bias of distances (ALiBi) under a causal triangle."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(100, 32)
        self.project, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.register_buffer("slopes", torch.tensor([0.5**i for i in range(1, 5)]))

    def forward(self, x):
        batch, length = x.shape
        qkv = self.project(self.words(x)).view(batch, length, 3, 4, 8)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        at = torch.arange(length, device=x.device)
        bias = (at[None] - at[:, None]).float()[None] * self.slopes[:, None, None]
        mask = torch.full((length, length), -math.inf, device=x.device).triu(1)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias + mask)
        return self.out(y.transpose(1, 2).flatten(2))


def fused_attention():
    return Fused(), {"x": ids()}


class Contrast(nn.Module):
    """A parameter of one number."""

    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(8, 16), nn.Linear(12, 16)
        self.logit_scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, a, b):
        x, y = F.normalize(self.left(a), dim=-1), F.normalize(self.right(b), dim=-1)
        return self.logit_scale.exp() * x @ y.t()


def contrast():
    return Contrast(), {"a": torch.randn(4, 8), "b": torch.randn(4, 12)}


class Graph(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x, edges):
        for layer in (self.first, self.second):
            x = layer(x)
            x = torch.zeros_like(x).index_add(0, edges[1], x.index_select(0, edges[0]))
        return x


def graph():
    edges = torch.randint(0, 20, (2, 40))
    return Graph(), {"x": torch.randn(20, 8), "edges": edges}, {"x": {0: "nodes"}, "edges": {1: "edges"}}


class Codebook(nn.Module):
    """detach ends a graph; booleans and floats multiply without a cast."""

    def __init__(self):
        super().__init__()
        self.encode, self.codes = nn.Linear(16, 8), nn.Embedding(32, 8)

    def forward(self, x):
        z = self.encode(x)
        nearest = torch.matmul(z, self.codes.weight.t()).argmax(1)
        q = self.codes(nearest)
        q = z + (q - z).detach()
        return q * (q > 0)


def codebook():
    return Codebook(), {"x": torch.randn(4, 16)}


class Pyramid(nn.Module):
    """Tokens become a map again, copied, which a convolution and a linear layer read."""

    def __init__(self):
        super().__init__()
        self.patch, self.norm = nn.Conv2d(3, 8, 4, 4), nn.LayerNorm(8)
        self.merge, self.fuse = nn.Conv2d(8, 16, 3, 2, 1), nn.Linear(8, 16)

    def forward(self, x):
        tokens = self.norm(self.patch(x).flatten(2).transpose(1, 2))
        maps = tokens.reshape(x.shape[0], x.shape[2] // 4, x.shape[3] // 4, -1).permute(0, 3, 1, 2).contiguous()
        return self.merge(maps).mean([2, 3]) + self.fuse(maps.flatten(2).transpose(1, 2)).mean(1)


def pyramid():
    return Pyramid(), {"x": torch.randn(2, 3, 32, 32)}


class Standardised(nn.Module):
    """batch_norm without statistics (weight standardisation), var, std, max over an axis, 1 / x."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x):
        w = self.first.weight
        w = F.batch_norm(w.reshape(1, 8, -1), None, None, training=True, momentum=0.0).reshape_as(w)
        x = F.conv2d(x, w, self.first.bias, padding=1)
        w = self.second.weight
        w = (w - w.mean((1, 2, 3), keepdim=True)) / (w.std((1, 2, 3), keepdim=True) + 1e-5)
        x = F.conv2d(x, w, self.second.bias, padding=1).flatten(2)
        return x.max(2)[0] * (1 / (x.var(2) + 1))


def standardised():
    return Standardised(), {"x": torch.randn(2, 3, 8, 8)}


class Directed(nn.Module):
    """weight_norm in both forms; clamped integers index a table."""

    def __init__(self):
        super().__init__()
        self.first = nn.utils.parametrizations.weight_norm(nn.Conv1d(4, 8, 3, padding=1))
        self.second = nn.utils.weight_norm(nn.Linear(8, 8))
        self.distances = nn.Embedding(9, 1)

    def forward(self, x):
        at = torch.arange(x.shape[2], device=x.device)
        bias = self.distances((at[None] - at[:, None]).clamp(-4, 4) + 4).squeeze(2)
        y = self.second(self.first(x).transpose(1, 2))
        return (y @ y.transpose(1, 2) + bias).softmax(2) @ y


def directed():
    return Directed(), {"x": torch.randn(2, 4, 16)}, {"x": {0: "batch"}}


class Crossed(nn.Module):
    """nn.MultiheadAttention whose keys are not its queries."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)

    def forward(self, x, memory):
        return self.attention(x, memory, memory, need_weights=False)[0]


def crossed():
    return Crossed(), {"x": torch.randn(2, 6, 32), "memory": torch.randn(2, 10, 32)}, {"x": {0: "b"}, "memory": {0: "b"}}


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.long, self.gated, self.head = nn.LSTMCell(4, 8), nn.GRUCell(8, 8), nn.Linear(8, 2)
        self.plain = nn.RNNCell(8, 8, nonlinearity="relu")

    def forward(self, x):
        h = c = g = p = torch.zeros(x.shape[0], 8)
        for t in range(3):
            h, c = self.long(x[:, t], (h, c))
            g = self.gated(h, g)
            p = self.plain(g, p)
        return self.head(p)


def cells():
    return Cells(), {"x": torch.randn(2, 3, 4)}, {"x": {0: "batch"}}


class Twins(nn.Module):
    """One batch norm runs twice, one has no weights; the activation after an instance norm works in place."""

    def __init__(self):
        super().__init__()
        norms = nn.BatchNorm2d(8), nn.InstanceNorm2d(8, affine=True)
        self.encode = nn.Sequential(nn.Conv2d(3, 8, 3), *norms, nn.LeakyReLU(0.01, True), nn.Flatten())
        self.project = nn.Sequential(nn.Linear(8 * 6 * 6, 16, bias=False), nn.BatchNorm1d(16, affine=False))

    def forward(self, a, b):
        return self.project(self.encode(a)).t() @ self.project(self.encode(b))


def twins():
    return Twins(), {"a": torch.randn(4, 3, 8, 8), "b": torch.randn(4, 3, 8, 8)}


class Weighted(nn.Module):
    """A few numbers that the root trains."""

    def __init__(self):
        super().__init__()
        self.w, self.first, self.second = nn.Parameter(torch.ones(2)), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        w = F.relu(self.w) / (self.w.sum() + 1e-4)
        return w[0] * self.first(x) + w[1] * self.second(x)


def weighted():
    return Weighted(), {"x": torch.randn(2, 8)}


class Scored(nn.Module):
    """leaky_relu as a function; keys repeated by hand; a small buffer as indices; the loss inside."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 16, 3, padding=1)
        self.q, self.kv, self.head = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 5)
        self.register_buffer("order", torch.tensor([0, 2, 1]))

    def forward(self, x, labels):
        x = F.leaky_relu(self.conv(x), 0.1).transpose(1, 2)
        q = self.q(x).view(2, -1, 4, 4).transpose(1, 2)
        k, v = self.kv(x).view(2, -1, 2, 2, 4).permute(2, 0, 3, 1, 4)
        k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        return F.cross_entropy(self.head(y)[:, self.order].flatten(0, 1), labels)


def scored():
    return Scored(), {"x": torch.randn(2, 4, 8), "labels": torch.randint(0, 5, (6,))}, {"x": {2: "length"}}


class Triplet(nn.Module):
    """One batch norm runs three times; stack, cosine similarity and binary cross entropy with a weight."""

    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Conv1d(3, 8, 3), nn.BatchNorm1d(8), nn.Flatten(), nn.Linear(48, 16))
        self.loss = nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0))

    def forward(self, a, b, c, labels):
        a, b, c = self.encode(a), self.encode(b), self.encode(c)
        return self.loss(torch.stack([F.cosine_similarity(a, b), F.cosine_similarity(a, c)], 1), labels)


def triplet():
    return Triplet(), {**{name: torch.randn(4, 3, 8) for name in "abc"}, "labels": torch.rand(4, 2).round()}


class Errors(nn.Module):
    """Losses that torch.export writes out."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 3)
        self.huber = nn.HuberLoss(delta=0.5)

    def forward(self, x, y):
        a, b, c = self.second(self.first(x).sigmoid()).unbind(1)
        likelihood = F.binary_cross_entropy(a.sigmoid(), y)
        return likelihood + F.smooth_l1_loss(b, y, reduction="sum") + self.huber(c, y)


def errors():
    return Errors(), {"x": torch.randn(32, 8), "y": torch.rand(32)}


class Canvas(nn.Module):
    """What is written into parts of a tensor."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        x = self.first(x)
        y = torch.zeros(x.shape[0], 20, 16)
        y[:, 2:10] = x
        y[:, 12, ::2] = x[:, 0, ::2]
        return self.second(y)


def canvas():
    return Canvas(), {"x": torch.randn(2, 8, 8)}


class Teacher(nn.Module):
    """A block without gradients, and a weight by its spectral norm."""

    def __init__(self):
        super().__init__()
        self.student = nn.utils.parametrizations.spectral_norm(nn.Linear(8, 16))
        self.teacher = nn.Sequential(nn.Linear(8, 16), nn.Tanh())

    def forward(self, x):
        with torch.no_grad():
            target = self.teacher(x)
        return F.mse_loss(self.student(x), target)


def teacher():
    return Teacher(), {"x": torch.randn(4, 8)}


class Turned(nn.Module):
    """affine_grid; a line of several statements; a list made in one."""

    def __init__(self):
        super().__init__()
        self.locate, self.parts = nn.Linear(64, 6), nn.ModuleList([nn.Conv2d(1, 4, 3, padding=1) for _ in range(3)])

    def forward(self, x):
        theta = self.locate(x.flatten(1)).view(-1, 2, 3); grid = F.affine_grid(theta, x.shape, align_corners=False)
        x = F.grid_sample(x, grid, align_corners=False)
        y = torch.cat([part(x).sin() for part in self.parts], 1); y = y * y.sigmoid(); return y.mean((2, 3))


def turned():
    return Turned(), {"x": torch.randn(2, 1, 8, 8)}


class Masked(nn.Module):
    """A mask says where a parameter, and where a number, is written."""

    def __init__(self):
        super().__init__()
        self.encode, self.score = nn.Linear(16, 32), nn.Linear(32, 1)
        self.token = nn.Parameter(torch.randn(32))

    def forward(self, x, mask, padding):
        h = self.encode(x) * 2
        h[mask] = self.token
        y = self.score(h).sum(-1)
        y[padding] = -1e9
        return y.softmax(-1)


def masked():
    return Masked(), {"x": torch.randn(2, 12, 16), "mask": torch.rand(2, 12) > 0.5, "padding": torch.rand(2, 12) > 0.8}


class Padded(nn.Module):
    """Padding that the model finds in its ids, joined with a causal mask."""

    def __init__(self):
        super().__init__()
        self.words, self.qkv, self.tag = nn.Embedding(50, 32), nn.Linear(32, 96), nn.Linear(32, 5)

    def forward(self, ids):
        batch, length = ids.shape
        q, k, v = self.qkv(self.words(ids)).view(batch, length, 3, 4, 8).permute(2, 0, 3, 1, 4).unbind(0)
        causal = torch.tril(torch.ones(length, length, dtype=torch.bool, device=ids.device))
        mask = (ids != 0)[:, None, None, :] & causal
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.tag(y.transpose(1, 2).reshape(batch, length, 32))


def padded():
    return Padded(), {"ids": torch.randint(1, 50, (2, 12))}


class Shifted(nn.Module):
    """Parts of one tensor are written into parts of another, along two axes, and read again."""

    def __init__(self):
        super().__init__()
        self.stem, self.out = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 4, 1)

    def forward(self, x):
        h = self.stem(x)
        y = torch.zeros_like(h)
        y[:-1, :4] = h[1:, :4]
        y[1:, 4:8] = h[:-1, 4:8]
        y[:, 8:] = h[:, 8:]
        y[:, :2, 1:-1, 1:-1] = y[:, :2, 1:-1, 1:-1] * 2
        return self.out(y)


def shifted():
    return Shifted(), {"x": torch.randn(4, 3, 12, 12)}


def fixed_shifted():
    return Shifted(), {"x": torch.randn(4, 3, 12, 12)}, {}


class CrossLayer(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(size, 4, dropout=0.1, batch_first=True)
        self.cross_attn = nn.MultiheadAttention(size, 4, dropout=0.1, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x, memory):
        y, _ = self.self_attn(x, x, x)
        x = self.norm1(x + self.dropout(y))
        y, _ = self.cross_attn(x, memory, memory)
        return self.norm2(x + self.dropout(y))


class Weighed(nn.Module):
    """nn.MultiheadAttention that returns its weights; two layers attend to the same memory."""

    def __init__(self):
        super().__init__()
        self.words, self.memory = nn.Embedding(100, 32), nn.Linear(8, 32)
        self.layers = nn.ModuleList([CrossLayer(32) for _ in range(2)])
        self.head = nn.Linear(32, 100)

    def forward(self, x, seen):
        x, memory = self.words(x), self.memory(seen)
        for layer in self.layers:
            x = layer(x, memory)
        return self.head(x)


def weighed():
    return Weighed(), {"x": ids(), "seen": torch.randn(2, 10, 8)}


class Centred(nn.Module):
    """A buffer with the name that torch.export gives a node."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.rand(1, 3, 1, 1))
        self.head, self.tail = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, x):
        y = self.head(x - self.mean)
        y = y * torch.sigmoid(y.mean((2, 3), keepdim=True))
        return self.tail(y) + self.mean


def centred():
    return Centred(), {"x": torch.randn(2, 3, 16, 16)}


class Precise(nn.Module):
    """A block without autocast, in which gradients flow; GELU written in Python."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        y = self.up(x)
        with torch.autocast("cpu", enabled=False):
            y = y.to(torch.float32)
            z = y.transpose(0, 1).float() @ y
            y = y @ z.softmax(-1)
        y = y * 0.5 * (1.0 + torch.erf(y / math.sqrt(2.0)))
        return self.down(y)


def precise():
    return Precise(), {"x": torch.randn(8, 16)}


class Quantiser(nn.Module):
    """The straight-through estimator and its two losses, of which TorchScript keeps no detach."""

    def __init__(self):
        super().__init__()
        self.encode, self.codes, self.decode = nn.Linear(16, 8), nn.Embedding(32, 8), nn.Linear(8, 16)

    def forward(self, x):
        z = self.encode(x)
        q = self.codes(torch.matmul(z, self.codes.weight.t()).argmax(1))
        loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(q.detach(), z)
        q = z + (q - z).detach()
        return self.decode(q).mean() + loss


def quantiser():
    return Quantiser(), {"x": torch.randn(8, 16)}


class Rewritten(nn.Module):
    """In-place methods as statements of their own, and as functions' arguments."""

    def __init__(self):
        super().__init__()
        self.up, self.middle, self.down = nn.Linear(16, 32), nn.Linear(32, 32), nn.Linear(32, 4)

    def forward(self, x):
        y = self.up(x)
        y.mul_(0.5).add_(1.0)
        far = y > 1.5
        y.masked_fill_(far, 0.0)
        z = F.silu(self.middle(y), inplace=True)
        kinds = torch.zeros_like(y)
        kinds.scatter_(1, y.argmax(1, keepdim=True), 1.0)
        kinds.mul_(0.1).add_(z * 0.2)
        return self.down(kinds.clamp_(min=-1.0))


def rewritten():
    return Rewritten(), {"x": torch.randn(8, 16)}


class Prototypes(nn.Module):
    """Distances by a matrix product; the square of a ReLU."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(16, 32)
        self.prototypes = nn.Parameter(torch.randn(40, 32))

    def forward(self, x):
        y = torch.square(F.relu(self.embed(x)))
        return torch.exp(-torch.cdist(y, self.prototypes))


def prototypes():
    return Prototypes(), {"x": torch.randn(32, 16)}


class SinusoidalTable(nn.Embedding):
    def __init__(self, positions, size):
        super().__init__(positions, size, _freeze=True)


class Positioned(nn.Module):
    """A frozen table of positions, and a mask of ones that only an export adds, as transformers does."""

    def __init__(self):
        super().__init__()
        self.embed_positions = SinusoidalTable(64, 16)
        self.query, self.key, self.value = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x):
        x = x + self.embed_positions(torch.arange(x.shape[1]))
        scores = self.query(x) @ self.key(x).transpose(1, 2) / 4.0
        if torch.jit.is_tracing() or torch.compiler.is_exporting():
            seen = torch.ones(x.shape[0], x.shape[1], dtype=torch.bool)[:, None, :].expand(-1, x.shape[1], -1)
            scores = scores + torch.where(seen, torch.tensor(0.0), torch.tensor(torch.finfo(x.dtype).min))
        return scores.softmax(-1) @ self.value(x)


class Encoded(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.encoder, self.head = nn.Embedding(100, 16), Positioned(), nn.Linear(16, 4)

    def forward(self, x):
        return self.head(self.encoder(self.words(x)))


def encoded():
    return Encoded(), {"x": ids()}


class Shortcut(nn.Module):
    """A map made of tokens, which diffusers copies in training before the convolution of a shortcut."""

    def __init__(self):
        super().__init__()
        self.mix, self.conv_shortcut = nn.Linear(8, 8), nn.Conv2d(8, 4, 1)

    def forward(self, x):
        y = self.mix(x.flatten(2).transpose(1, 2)).transpose(1, 2).reshape(x.shape)
        return self.conv_shortcut(y.contiguous() if self.training else y)


class Shortcuts(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Shortcut()

    def forward(self, x):
        return self.block(x)


def shortcut():
    return Shortcuts(), {"x": torch.randn(2, 8, 6, 6)}


class Squeezed(nn.Module):
    """torch.squeeze of a dimension that is not 1: the exporter writes a Squeeze that ONNX forbids."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        return self.head(x).squeeze(1).relu()


def squeezed():
    return Squeezed(), {"x": torch.randn(2, 3, 8)}
