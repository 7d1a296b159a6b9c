// What the columns of a table hold: numbers, categories or nothing, judged by all of their rows.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/readers/csv_table.hpp"

namespace lockstep::data {

/// Rows of one file, behind its header.
struct TableFile {
  std::string path;
  CsvRow header;
  std::vector<CsvRow> rows;
  /// Where a value stands: "houses.csv:17: column 'age'".
  [[nodiscard]] std::string place(std::size_t row, const std::string& column) const;
  /// Where the names of the columns stand: "houses.csv:1", or a Parquet file's path.
  [[nodiscard]] std::string header_place() const;
};

/// Of a CSV or a Parquet file, which its first bytes tell. Throws Error(data) for a file without a header or rows, or
/// with rows of another length than the header's.
[[nodiscard]] TableFile parse_table(std::string_view text, const std::string& path);

/// Which column of the header is called so. Throws Error(data) that offers the nearest.
[[nodiscard]] std::size_t column_called(const TableFile& file, const std::string& name);

/// The columns that words name: a word is a name, or a pattern of names, which stands for all that match, in the
/// header's order, but for `except`. Each column is named once. Throws Error(data) for a word that no column is like.
[[nodiscard]] std::vector<std::string> columns_like(const TableFile& file, const std::vector<std::string>& words,
                                                    const std::vector<std::string>& except);

/// The text without spaces and tabs at its ends, as values are compared.
[[nodiscard]] std::string_view without_spaces(std::string_view text);

/// Nothing, or what programs write for it: NA, N/A, NaN, null, None.
[[nodiscard]] bool is_missing(const std::string& value);

/// nothing: the text is no number. Infinite ones are numbers; whoever needs finite ones says so.
[[nodiscard]] std::optional<double> number_in(const std::string& value);

/// A column of all files.
struct ColumnValues {
  std::size_t numbers = 0, texts = 0, missing = 0;  ///< values
  std::vector<std::string>
      categories;  ///< distinct values, but for missing ones: as numbers, if all are, else as words
  /// Whether it is one of numbers: most of what is there are, or nothing is there.
  [[nodiscard]] bool are_numbers() const { return numbers >= texts; }
};
[[nodiscard]] ColumnValues look_at_column(const std::vector<TableFile>& files, const std::string& name);

}  // namespace lockstep::data
