#!/usr/bin/env python3
"""Writes the Parquet files beside it, and beside each a CSV of what lockstep shall read in it.

pip install numpy pandas pyarrow==22.0.0 polars==2.1.0 duckdb==2.0.1; python tests/data/parquet/make.py
"""
import csv
import datetime
import decimal
import json
import math
import pathlib
import random

import duckdb
import numpy
import polars
import pyarrow
import pyarrow.parquet

HERE = pathlib.Path(__file__).parent
ROWS = 120


def number(value):
    """A float32 or float64 as its shortest decimal, as C++'s fmt writes it."""
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == 0 or 1e-4 <= abs(value) < 1e16:
        return numpy.format_float_positional(value, trim="-")
    return repr(float(str(value)))


def text(value):
    if value is None or (isinstance(value, (float, numpy.floating)) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (float, numpy.floating)):
        return number(value)
    return str(value)


def expect(name, columns):
    with open(HERE / f"{name}.csv", "w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*[[text(value) for value in values] for values in columns.values()]))


def holes(draw, values, share=0.2):
    return [None if draw.random() < share else value for value in values]


def usual(draw):
    """What tables have."""
    words = ["flat", "house", "villa, large", 'a "quoted" one', "Käse", ""]
    return {
        "whole": [draw.randrange(-(2**62), 2**62) for _ in range(ROWS)],
        "small": holes(draw, [draw.randrange(-100, 100) for _ in range(ROWS)]),
        "real": [draw.uniform(-1000, 1000) for _ in range(ROWS)],
        "gaps": holes(draw, [draw.choice([0.5, 1e-7, 3e20, math.inf, math.nan]) for _ in range(ROWS)]),
        "flag": holes(draw, [draw.random() < 0.3 for _ in range(ROWS)]),
        "word": holes(draw, [draw.choice(words) for _ in range(ROWS)]),
        "name": [f"customer {draw.randrange(10**draw.randrange(1, 9))}" for _ in range(ROWS)],
        "nothing": [None] * ROWS,
    }


def table_of(columns, **types):
    return pyarrow.table({name: pyarrow.array(values, types.get(name)) for name, values in columns.items()})


def write(name, columns, table, **settings):
    pyarrow.parquet.write_table(table, HERE / f"{name}.parquet", **settings)
    expect(name, columns)


def main():
    draw = random.Random(1)
    columns = usual(draw)
    text_type = {"nothing": pyarrow.string()}
    table = table_of(columns, **text_type)
    write("default", columns, table)
    write("plain", columns, table, use_dictionary=False, compression="none", row_group_size=70)
    packed = {name: "DELTA_BINARY_PACKED" for name in ("whole", "small")}
    packed |= {"real": "BYTE_STREAM_SPLIT", "gaps": "BYTE_STREAM_SPLIT", "flag": "RLE"}
    packed |= {"word": "DELTA_LENGTH_BYTE_ARRAY", "name": "DELTA_BYTE_ARRAY", "nothing": "PLAIN"}
    write("deltas", columns, table, use_dictionary=False, column_encoding=packed, compression="zstd",
          data_page_version="2.0", data_page_size=512, write_batch_size=32, row_group_size=200)

    day = datetime.date(1969, 12, 24)
    moment = datetime.datetime(1969, 12, 31, 23, 59, 59, 250000)
    days = [day + datetime.timedelta(days=draw.randrange(20000)) for _ in range(ROWS)]
    moments = [moment + datetime.timedelta(seconds=draw.randrange(10**9)) for _ in range(ROWS)]
    others = {
        "byte": holes(draw, [draw.randrange(256) for _ in range(ROWS)]),
        "large": [draw.randrange(2**63, 2**64) for _ in range(ROWS)],
        "single": [numpy.float32(draw.uniform(-10, 10)) for _ in range(ROWS)],
        "half": [numpy.float16(draw.uniform(-10, 10)) for _ in range(ROWS)],
        "price": [decimal.Decimal(draw.randrange(-100000, 100000)).scaleb(-2) for _ in range(ROWS)],
        "wide": [decimal.Decimal(draw.randrange(-(10**30), 10**30)).scaleb(-5) for _ in range(ROWS)],
        "day": days,
        "moment": holes(draw, moments),
        "clock": [datetime.time(draw.randrange(24), draw.randrange(60), draw.randrange(60)) for _ in range(ROWS)],
        "letters": [draw.choice(["ab", "cd"]) for _ in range(ROWS)],
    }
    types = {"byte": pyarrow.uint8(), "large": pyarrow.uint64(), "single": pyarrow.float32(),
             "half": pyarrow.float16(), "price": pyarrow.decimal128(9, 2), "wide": pyarrow.decimal128(38, 5),
             "moment": pyarrow.timestamp("us"), "clock": pyarrow.time64("us")}
    written = dict(others, letters=[letters.encode() for letters in others["letters"]])
    table = table_of(written, **types, letters=pyarrow.binary(2))
    printed = dict(others, half=[numpy.float32(value) for value in others["half"]])
    printed["wide"] = [f"{value:.5f}" for value in others["wide"]]
    printed["price"] = [f"{value:.2f}" for value in others["price"]]
    printed["moment"] = [None if value is None else f"{value:%Y-%m-%d %H:%M:%S.%f}" for value in others["moment"]]
    write("types", printed, table, compression="gzip", store_decimal_as_integer=True)
    # The old form of timestamps has nanoseconds.
    table = table_of({"moment": others["moment"], "day": days}, moment=pyarrow.timestamp("us"))
    nanoseconds = [None if value is None else value + "000" for value in printed["moment"]]
    write("old", {"moment": nanoseconds, "day": days}, table, use_deprecated_int96_timestamps=True, version="1.0")

    frame = polars.DataFrame({name: values for name, values in columns.items() if name != "nothing"})
    frame.write_parquet(HERE / "polars.parquet", row_group_size=130, data_page_size=1024)
    expect("polars", {name: columns[name] for name in frame.columns})
    duckdb.sql(f"COPY frame TO '{HERE}/duckdb.parquet' (FORMAT parquet, PARQUET_VERSION v2)")
    expect("duckdb", {name: columns[name] for name in frame.columns})

    numbers = {"a": list(range(8)), "b": [1.5] * 8}
    pyarrow.parquet.write_table(table_of(numbers), HERE / "brotli.parquet", compression="brotli")
    pyarrow.parquet.write_table(table_of({"a": [1, 2], "tags": [[1], [2, 3]]}), HERE / "lists.parquet")
    words = [("red", "green", "blue")[i % 3] for i in range(120)]
    pyarrow.parquet.write_table(table_of({"word": words}), HERE / "sums.parquet", compression="none",
                                write_page_checksum=True, store_schema=False)

    # As pandas writes a frame with an index of its own.
    frame = {"card": [str(2 + i % 9) if i % 13 < 9 else "JQKA"[i % 13 - 9] for i in range(40)],
             "tags": [[i, i + 1] for i in range(40)], "nested": [{"a": i, "b": [i]} for i in range(40)],
             "day": [day + datetime.timedelta(days=i) for i in range(40)],
             "moment": [moment + datetime.timedelta(hours=i) for i in range(40)],
             "y": [i / 4 for i in range(40)], "__index_level_0__": [i * 7 % 40 for i in range(40)]}
    notes = {"pandas": json.dumps({"index_columns": ["__index_level_0__"], "columns": []})}
    pyarrow.parquet.write_table(table_of(frame).replace_schema_metadata(notes), HERE / "frame.parquet")
    # What pandas says of a column of categories, in bytes that are those of numbers, dates or texts.
    choices = {"rooms": [3, 1, 2, None], "size": [0.5, 1.5, 1.0], "zip": ["0123", "4567"], "day": [day, moment.date()]}
    written = {name: [values[i % len(values)] for i in range(24)] for name, values in choices.items()}
    described = [{"name": name, "field_name": name, "pandas_type": "categorical", "numpy_type": "int8",
                  "metadata": {"num_categories": len(values), "ordered": False}} for name, values in choices.items()]
    notes = {"pandas": json.dumps({"index_columns": [], "columns": [*described, {
        "name": "y", "field_name": "y", "pandas_type": "int64", "numpy_type": "int64", "metadata": None}]})}
    table = table_of({**written, "y": [i * 7 % 5 for i in range(24)]}).replace_schema_metadata(notes)
    pyarrow.parquet.write_table(table, HERE / "categorical.parquet")
    constants("constant", "x", 220_000, 40)
    constants("long", "long " * 20_000, 100_000, 1)


def constants(name, value, rows, columns):
    """Of one value, so that little is written of many rows."""
    column = pyarrow.DictionaryArray.from_arrays(numpy.zeros(rows, numpy.int8), [value])
    table = pyarrow.table({f"c{i}": column for i in range(columns)})
    pyarrow.parquet.write_table(table, HERE / f"{name}.parquet", compression="zstd", write_statistics=False,
                                store_schema=False)


if __name__ == "__main__":
    main()
