// What the columns of a table hold: numbers, dates, categories or nothing, judged by all of their rows.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/readers/csv_table.hpp"
#include "data/readers/file.hpp"
#include "data/readers/table_values.hpp"

namespace lockstep::data {

/// Rows of one file, behind its header. All have as many fields as the header; those of a row with a fault mean
/// nothing.
struct TableFile {
  std::string path;
  CsvRow header;
  std::vector<CsvRow> rows;
  std::vector<ColumnType> types = {};                  ///< by column
  std::vector<std::string> row_names = {};             ///< columns that programs write beside the data: pandas' index
  std::map<std::string, std::string> unreadable = {};  ///< columns of lists, and what to say of them
  std::vector<std::string> warnings = {};  ///< columns without a name, which are left out, and rows that are too short
  /// Where a value stands: "houses.csv:17: column 'age'".
  std::string place(std::size_t row, const std::string& column) const;
  /// Where the names of the columns stand: "houses.csv:1", or a Parquet file's path.
  std::string header_place() const;
};

/// A CSV or a Parquet file, which its first bytes tell, packed or not. Throws Error(data) for a file without a header
/// or rows, and for text that is not UTF-8, but in column `raw`.
[[nodiscard]] TableFile read_table(const std::string& path, const ByteCounter& counter, const std::string& raw = "");
/// The same of its unpacked bytes.
[[nodiscard]] TableFile parse_table(std::string bytes, const std::string& path, const std::string& raw = "");

/// Which column of the header is called so. Throws Error(data) that offers the nearest.
[[nodiscard]] std::size_t column_called(const TableFile& file, const std::string& name);

/// The same of a column whose values are needed: throws Error(data) for one that is not read, too.
[[nodiscard]] std::size_t readable_column(const TableFile& file, const std::string& name);

/// The columns that words name: a word is a name, or a pattern of names, which stands for all that match, in the
/// header's order, but for `except`. Each column is named once. Throws Error(data) for a word that no column is like.
[[nodiscard]] std::vector<std::string> columns_like(const TableFile& file, const std::vector<std::string>& words,
                                                    const std::vector<std::string>& except);

/// A column of all files.
struct ColumnValues {
  std::size_t numbers = 0, dates = 0, texts = 0, missing = 0;  ///< values
  bool typed_as_texts = false;                                 ///< by a file that knows types
  bool are_booleans = false;                                   ///< all that is there
  bool count_rows = false;                                     ///< n different integers in a row, as row numbers are
  std::string compact_date;                                    ///< a number such as 20240131, if all are, and differ
  std::string rounded;                                         ///< a whole number that double does not hold, if any
  std::string padded;                                          ///< a code such as 00501, if any
  std::string other;                                           ///< one that is no number, if any
  std::string decimal_comma;                                   ///< a text such as 1,5, if all texts are such
  /// Distinct values, but for missing ones: as numbers, if all are, else as words. A value that is spelt in several
  /// ways (1 and 1.0) has the name that these have in common. Of numbers only if they are asked for.
  std::vector<std::string> categories;
  std::size_t present() const { return numbers + dates + texts; }
  /// Whether it is one of numbers: most of what is there are, or nothing is there.
  bool are_numbers() const { return !typed_as_texts && numbers >= texts + dates; }
  bool are_dates() const { return !typed_as_texts && !are_numbers() && dates >= texts; }
};
[[nodiscard]] ColumnValues look_at_column(const std::vector<TableFile>& files, const std::string& name,
                                          bool categorical);

}  // namespace lockstep::data
