"""A network of depthwise convolutions: inverted residual blocks as in MobileNet v2."""

import torch
from torch import nn

# expansion, channels, blocks, stride
STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def conv_bn(before, after, kernel, stride=1, groups=1):
    return [nn.Conv2d(before, after, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(after)]


class InvertedResidual(nn.Module):
    def __init__(self, before, after, stride, expansion):
        super().__init__()
        hidden = before * expansion
        expand = [*conv_bn(before, hidden, 1), nn.ReLU6(inplace=True)] if expansion != 1 else []
        self.conv = nn.Sequential(
            *expand, *conv_bn(hidden, hidden, 3, stride, groups=hidden), nn.ReLU6(inplace=True), *conv_bn(hidden, after, 1)
        )
        self.residual = stride == 1 and before == after

    def forward(self, x):
        if self.residual:
            return x + self.conv(x)
        return self.conv(x)


class MobileNet(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        blocks, before = [*conv_bn(3, 32, 3, 2), nn.ReLU6(inplace=True)], 32
        for expansion, channels, count, stride in STAGES:
            for i in range(count):
                blocks.append(InvertedResidual(before, channels, 1 if i else stride, expansion))
                before = channels
        self.features = nn.Sequential(*blocks, *conv_bn(before, 1280, 1), nn.ReLU6(inplace=True))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, classes))

    def forward(self, x):
        x = self.features(x)
        x = nn.functional.adaptive_avg_pool2d(x, (1, 1))
        x = torch.flatten(x, 1)
        return self.classifier(x)


def mobilenet_v2():
    return MobileNet(), {"x": torch.randn(2, 3, 224, 224)}
