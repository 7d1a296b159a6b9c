// Apache Parquet: tables by columns, as pandas, Polars, DuckDB and Spark write them. Columns of plain values are read,
// of all encodings, packed with snappy, gzip, Zstandard or not at all.
// https://github.com/apache/parquet-format
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/readers/csv_table.hpp"
#include "data/readers/table_values.hpp"
#include "data/unpack.hpp"

namespace lockstep::data {

/// Whether a file begins as Parquet does.
[[nodiscard]] bool is_parquet(std::string_view bytes);

struct ParquetTable {
  /// The names of the columns, then the rows, as a CSV would have them: numbers in decimal, times as
  /// 2024-05-01 12:30:00, nulls as empty fields. `line` is the number of a row, from 1; of the names it is 0.
  std::vector<CsvRow> rows;
  std::vector<ColumnType> types;                  ///< by column
  std::vector<std::string> index;                 ///< columns that are the index of the pandas frame that was written
  std::map<std::string, std::string> unreadable;  ///< columns whose values are not read, and why: they are empty
};

/// Throws Error(data) that begins with the path.
[[nodiscard]] ParquetTable read_parquet(std::string_view bytes, const std::string& path,
                                        const UnpackLimits& limits = {});

}  // namespace lockstep::data
