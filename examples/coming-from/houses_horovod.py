#!/usr/bin/env python3
"""The training of ../houses.yaml as it is usually written with Horovod and PyTorch: mpirun -np 2 python
houses_horovod.py. Needs horovod, torch and numpy."""
import csv
import math
import pathlib

import horovod.torch as hvd
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

TABLE = pathlib.Path(__file__).resolve().parent.parent / "houses.csv"
NUMBERS, CATEGORIES, TARGET = ("area", "rooms", "year", "distance"), ("kind", "heating"), "price"
BATCH, EPOCHS, PEAK = 32, 100, 0.01


def read_table():
    """Features and prices. Numbers become z-scores of the training rows, a missing one 0 with a flag; categories become
    one-hot, a missing one all zeros."""
    with open(TABLE, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    order = np.random.default_rng(1).permutation(len(rows))
    training, validation = order[len(rows) // 5:], order[:len(rows) // 5]
    columns = []
    for name in NUMBERS:
        values = np.array([float(row[name]) if row[name] else math.nan for row in rows])
        mean, deviation = np.nanmean(values[training]), np.nanstd(values[training])
        missing = np.isnan(values)
        columns.append(np.where(missing, 0, (values - mean) / deviation))
        if missing.any():
            columns.append(missing)
    for name in CATEGORIES:
        for word in sorted({row[name] for row in rows} - {""}):
            columns.append(np.array([row[name] == word for row in rows]))
    features = torch.tensor(np.stack(columns, axis=1), dtype=torch.float32)
    prices = torch.tensor([[float(row[TARGET])] for row in rows])
    return TensorDataset(features[training], prices[training]), features[validation], prices[validation]


def main():
    hvd.init()
    torch.manual_seed(1)
    torch.set_num_threads(1)
    training, features, prices = read_table()
    model = nn.Sequential(nn.Linear(features.shape[1], 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    # The batch is divided here; a batch of each process's own would need a rate times hvd.size().
    sampler = DistributedSampler(training, hvd.size(), hvd.rank(), seed=1, drop_last=True)
    loader = DataLoader(training, batch_size=BATCH // hvd.size(), sampler=sampler, drop_last=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=PEAK)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS * len(loader))
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)  # forgotten, each epoch has the order of the first
        for inputs, targets in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(inputs), targets).backward()
            optimizer.step()
            schedule.step()
    model.eval()
    with torch.no_grad():
        errors = model(features) - prices
    if hvd.rank() == 0:
        print(f"mae {errors.abs().mean():.3f}  rmse {errors.square().mean().sqrt():.3f}")
        torch.save(model.state_dict(), "houses.pt")


if __name__ == "__main__":
    main()
