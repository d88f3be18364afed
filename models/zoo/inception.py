"""A network of parallel branches joined by concatenation: some of GoogLeNet's blocks, with batch norm."""

import torch
from torch import nn


class ConvBlock(nn.Module):
    def __init__(self, before, after, kernel, **options):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(before, after, kernel, bias=False, **options), nn.BatchNorm2d(after)

    def forward(self, x):
        return nn.functional.relu(self.bn(self.conv(x)), inplace=True)


class Inception(nn.Module):
    def __init__(self, before, one, three_in, three, five_in, five, pool):
        super().__init__()
        self.branch1 = ConvBlock(before, one, 1)
        self.branch2 = nn.Sequential(ConvBlock(before, three_in, 1), ConvBlock(three_in, three, 3, padding=1))
        self.branch3 = nn.Sequential(ConvBlock(before, five_in, 1), ConvBlock(five_in, five, 5, padding=2))
        self.branch4 = nn.Sequential(nn.MaxPool2d(3, 1, 1), ConvBlock(before, pool, 1))

    def forward(self, x):
        return torch.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)


class InceptionNet(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        self.stem = nn.Sequential(
            ConvBlock(3, 64, 7, stride=2, padding=3), nn.MaxPool2d(3, 2, ceil_mode=True),
            ConvBlock(64, 64, 1), ConvBlock(64, 192, 3, padding=1), nn.MaxPool2d(3, 2, ceil_mode=True),
        )
        self.stage3 = nn.Sequential(
            Inception(192, 64, 96, 128, 16, 32, 32), Inception(256, 128, 128, 192, 32, 96, 64), nn.MaxPool2d(3, 2, ceil_mode=True)
        )
        self.stage4 = nn.Sequential(
            Inception(480, 192, 96, 208, 16, 48, 64), Inception(512, 256, 160, 320, 32, 128, 128), nn.MaxPool2d(2, 2, ceil_mode=True),
        )
        self.stage5 = nn.Sequential(Inception(832, 256, 160, 320, 32, 128, 128), Inception(832, 384, 192, 384, 48, 128, 128))
        self.dropout, self.fc = nn.Dropout(0.2), nn.Linear(1024, classes)

    def forward(self, x):
        x = self.stem(x)
        x = self.stage3(x)
        x = self.stage4(x)
        x = self.stage5(x)
        x = torch.flatten(nn.functional.adaptive_avg_pool2d(x, 1), 1)
        return self.fc(self.dropout(x))


def inception():
    return InceptionNet(), {"x": torch.randn(2, 3, 224, 224)}
