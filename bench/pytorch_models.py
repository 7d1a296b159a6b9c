"""The examples' networks in PyTorch, for comparison: same shapes, batch and optimizer."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class BasicBlock(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != width:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


class ResNet20(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        blocks, inputs = [], 16
        for stage, width in enumerate((16, 32, 64)):
            for i in range(3):
                blocks.append(BasicBlock(inputs, width, 2 if stage > 0 and i == 0 else 1))
                inputs = width
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.conv1, self.norm1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.norm3 = nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        y = F.relu(self.norm2(self.conv2(y)))
        return F.relu(self.norm3(self.conv3(y)) + self.shortcut(x))


class ResNet50(nn.Module):
    def __init__(self, classes=1000):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
                                  nn.MaxPool2d(3, 2, 1))
        blocks, inputs = [], 64
        for stage, (width, count) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
            for i in range(count):
                blocks.append(Bottleneck(inputs, width, 2 if stage > 0 and i == 0 else 1))
                inputs = 4 * width
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(2048, classes)

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


def conv_norm_relu(inputs, width, pool=1):
    """Convolution, then max-pooling over `pool` x `pool` if `pool` is not 1, batch norm and relu."""
    return nn.Sequential(nn.Conv2d(inputs, width, 3, 1, 1, bias=False),
                         nn.MaxPool2d(pool) if pool > 1 else nn.Identity(), nn.BatchNorm2d(width), nn.ReLU())


class ResNet9(nn.Module):
    """The network of examples/cifar10-resnet9.yaml, with the same distributions of initial values."""

    def __init__(self, classes=10):
        super().__init__()
        self.first = nn.Sequential(conv_norm_relu(3, 64), conv_norm_relu(64, 128, pool=2))
        self.residual1 = nn.Sequential(conv_norm_relu(128, 128), conv_norm_relu(128, 128))
        self.middle = nn.Sequential(conv_norm_relu(128, 256, pool=2), conv_norm_relu(256, 512, pool=2))
        self.residual2 = nn.Sequential(conv_norm_relu(512, 512), conv_norm_relu(512, 512))
        self.head = nn.Linear(512, classes, bias=False)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = self.first(x)
        x = self.middle(x + self.residual1(x))
        x = x + self.residual2(x)
        return 0.125 * self.head(F.max_pool2d(x, x.shape[2:]).flatten(1))


class Block(nn.Module):
    def __init__(self, width, heads, bias):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width, bias=bias), nn.LayerNorm(width, bias=bias)
        self.qkv, self.projection = nn.Linear(width, 3 * width, bias=bias), nn.Linear(width, width, bias=bias)
        self.expand, self.contract = nn.Linear(width, 4 * width, bias=bias), nn.Linear(4 * width, width, bias=bias)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2)
                   for y in self.qkv(self.norm1(x)).split(c, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c)
        x = x + self.projection(y)
        return x + self.contract(F.gelu(self.expand(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """The default is nanoGPT's configuration for CPUs."""

    def __init__(self, vocabulary=65, layers=4, heads=4, width=128, context=64, bias=False):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads, bias) for _ in range(layers)))
        self.norm = nn.LayerNorm(width, bias=bias)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                deviation = 0.02 / math.sqrt(2 * layers) if "projection" in name or "contract" in name else 0.02
                nn.init.normal_(parameter, std=deviation)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        return self.head(self.norm(self.blocks(x)))


class Recurrent(nn.Module):
    """A language model of recurrent layers, as lockstep's zoo has it: `layer` is nn.LSTM or nn.GRU."""

    def __init__(self, layer, width, layers, vocabulary=65):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.layers = layer(width, width, layers, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, x):
        return self.head(self.layers(self.tokens(x))[0])
