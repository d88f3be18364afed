"""A recommender: large embedding tables, dot products between them, two perceptrons (DLRM)."""

import torch
from torch import nn

ROWS = (1_000_000, 500_000, 250_000, 100_000, 50_000, 10_000, 1_000, 100)


class Recommender(nn.Module):
    def __init__(self, dense=13, width=64):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for rows in ROWS)
        self.bottom = nn.Sequential(nn.Linear(dense, 512), nn.ReLU(), nn.Linear(512, width), nn.ReLU())
        count = len(ROWS) + 1
        self.top = nn.Sequential(nn.Linear(width + count * (count - 1) // 2, 1024), nn.ReLU(), nn.Linear(1024, 1))
        rows, columns = torch.tril_indices(count, count, -1)
        self.register_buffer("rows", rows)
        self.register_buffer("columns", columns)

    def forward(self, dense, sparse):
        x = self.bottom(dense)
        vectors = [x] + [table(sparse[:, i]) for i, table in enumerate(self.tables)]
        vectors = torch.stack(vectors, dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        products = products[:, self.rows, self.columns]
        return self.top(torch.cat([x, products], dim=1))


def dlrm():
    inputs = {"dense": torch.randn(2, 13), "sparse": torch.randint(0, 100, (2, len(ROWS)))}
    return Recommender(), inputs, {name: {0: "batch"} for name in inputs}
