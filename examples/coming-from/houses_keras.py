#!/usr/bin/env python3
"""The training of ../houses.yaml as it is usually written with Keras: python houses_keras.py. Needs keras 3 and a
backend: KERAS_BACKEND=torch, tensorflow or jax."""
import csv
import math
import pathlib

import keras
import numpy as np
from keras import layers

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
    features = np.stack(columns, axis=1).astype("float32")
    prices = np.array([[float(row[TARGET])] for row in rows], "float32")
    return features[training], prices[training], features[validation], prices[validation]


def main():
    keras.utils.set_random_seed(1)
    inputs, targets, features, prices = read_table()
    model = keras.Sequential([layers.Dense(64, activation="relu"), layers.Dense(64, activation="relu"), layers.Dense(1)])
    schedule = keras.optimizers.schedules.CosineDecay(PEAK, EPOCHS * math.ceil(len(inputs) / BATCH))
    model.compile(optimizer=keras.optimizers.Adam(schedule), loss="mean_squared_error",
                  metrics=["mae", keras.metrics.RootMeanSquaredError(name="rmse")])
    model.fit(inputs, targets, batch_size=BATCH, epochs=EPOCHS, verbose=0)
    found = model.evaluate(features, prices, verbose=0, return_dict=True)
    print(f"mae {found['mae']:.3f}  rmse {found['rmse']:.3f}")
    model.save("houses.keras")


if __name__ == "__main__":
    main()
