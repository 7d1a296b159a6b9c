// Apache Parquet: tables by columns, as pandas, Polars, DuckDB and Spark write them. Columns of plain values are read,
// of all encodings, packed with snappy, gzip, Zstandard or not at all.
// https://github.com/apache/parquet-format
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "data/readers/csv_table.hpp"

namespace lockstep::data {

/// Whether a file begins as Parquet does.
[[nodiscard]] bool is_parquet(std::string_view bytes);

/// The names of the columns, then the rows, as a CSV would have them: numbers in decimal, times as
/// 2024-05-01 12:30:00, nulls as empty fields. `line` is the number of a row, from 1; of the names it is 0.
/// Throws Error(data) that begins with the path.
[[nodiscard]] std::vector<CsvRow> read_parquet(std::string_view bytes, const std::string& path);

}  // namespace lockstep::data
