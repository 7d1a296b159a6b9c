#!/usr/bin/env python3
"""The training of ../houses.yaml as it is usually written with DeepSpeed: deepspeed --num_gpus 2 houses_deepspeed.py, or
on CPUs DS_ACCELERATOR=cpu deepspeed --num_accelerators 2 houses_deepspeed.py. Needs deepspeed, torch and numpy."""
import csv
import math
import pathlib

import deepspeed
import numpy as np
import torch
from torch import nn
from torch.utils.data import TensorDataset

TABLE = pathlib.Path(__file__).resolve().parent.parent / "houses.csv"
NUMBERS, CATEGORIES, TARGET = ("area", "rooms", "year", "distance"), ("kind", "heating"), "price"
BATCH, EPOCHS, PEAK = 32, 100, 0.01
CONFIG = {
    "train_batch_size": BATCH,  # of all processes together
    "dataloader_drop_last": True,
    "zero_optimization": {"stage": 1},
    "optimizer": {"type": "Adam", "params": {"lr": PEAK, "torch_adam": True}},
    "scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": EPOCHS * 20, "warmup_num_steps": 1,
                                                       "warmup_min_ratio": 1, "cos_min_ratio": 0}},
}


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
    torch.manual_seed(1)
    torch.set_num_threads(1)
    training, features, prices = read_table()
    model = nn.Sequential(nn.Linear(features.shape[1], 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    engine, _, loader, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), training_data=training,
                                                config=CONFIG)
    for epoch in range(EPOCHS):
        loader.data_sampler.set_epoch(epoch)  # forgotten, each epoch has the order of the first
        for inputs, targets in loader:
            loss = nn.functional.mse_loss(engine(inputs.to(engine.device)), targets.to(engine.device))
            engine.backward(loss)
            engine.step()
    engine.eval()
    with torch.no_grad():
        errors = engine(features.to(engine.device)) - prices.to(engine.device)
    if engine.global_rank == 0:
        print(f"mae {errors.abs().mean():.3f}  rmse {errors.square().mean().sqrt():.3f}")
    engine.save_checkpoint("houses-deepspeed")


if __name__ == "__main__":
    main()
