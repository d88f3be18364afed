"""Residual networks: ResNet-50 (bottleneck blocks) and a shallow pre-activation network with squeeze and excitation."""

import torch
from torch import nn


class Bottleneck(nn.Module):
    def __init__(self, before, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(before, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or before != 4 * width:
            self.downsample = nn.Sequential(nn.Conv2d(before, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class SqueezeExcitation(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.fc1, self.fc2 = nn.Conv2d(channels, channels // 8, 1), nn.Conv2d(channels // 8, channels, 1)

    def forward(self, x):
        scale = x.mean((2, 3), keepdim=True)
        scale = self.fc2(torch.relu(self.fc1(scale)))
        return x * torch.sigmoid(scale)


class PreActivation(nn.Module):
    def __init__(self, before, width, stride):
        super().__init__()
        self.bn1, self.conv1 = nn.BatchNorm2d(before), nn.Conv2d(before, width, 3, stride, 1, bias=False)
        self.bn2, self.conv2 = nn.BatchNorm2d(width), nn.Conv2d(width, 4 * width, 3, 1, 1, bias=False)
        self.se = SqueezeExcitation(4 * width)
        self.shortcut = nn.Conv2d(before, 4 * width, 1, stride, bias=False) if before != 4 * width else nn.Identity()

    def forward(self, x):
        out = self.conv1(torch.relu(self.bn1(x)))
        out = self.conv2(torch.relu(self.bn2(out)))
        return self.se(out) + self.shortcut(x)


class ResNet(nn.Module):
    def __init__(self, block, depths, width=64, classes=1000):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        self.relu, self.maxpool = nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        before, stages = 64, []
        for i, depth in enumerate(depths):
            blocks = []
            for j in range(depth):
                blocks.append(block(before, width << i, 2 if i and not j else 1))
                before = 4 * (width << i)
            stages.append(nn.Sequential(*blocks))
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(before, classes)

    def forward(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.maxpool(x)
        x = self.layer1(x)
        x = self.layer2(x)
        x = self.layer3(x)
        x = self.layer4(x)
        x = torch.flatten(self.avgpool(x), 1)
        return self.fc(x)


def resnet50():
    return ResNet(Bottleneck, (3, 4, 6, 3)), {"x": torch.randn(2, 3, 224, 224)}


def se_resnet():
    return ResNet(PreActivation, (2, 2, 2, 2), width=32), {"x": torch.randn(2, 3, 224, 224)}
