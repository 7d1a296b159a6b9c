#include "data/readers/table_columns.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string_view>

#include "core/glob.hpp"
#include "core/nearest.hpp"
#include "data/parquet/parquet.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

constexpr std::array<std::string_view, 11> kMissing{"",    "NA",   "N/A",  "n/a",  "NaN", "nan",
                                                    "NAN", "null", "NULL", "None", "<NA>"};

void check_header(const TableFile& file) {
  const auto& names = file.header.fields;
  const auto fail = [&](const std::string& what) {
    throw Error(ExitCode::data, fmt::format("{}: {}", file.header_place(), what));
  };
  if (names.size() == 1 && names[0].find_first_of(";\t") != std::string::npos) {
    fail(fmt::format("expected commas between the columns, found '{}'; write the file with commas", names[0]));
  }
  if (std::all_of(names.begin(), names.end(), [](const auto& name) { return number_in(name).has_value(); })) {
    fail(fmt::format("expected the names of the columns in the first row, found numbers: {}", fmt::join(names, ", ")));
  }
  for (const auto& name : names) {
    if (name.empty()) fail("a column has no name; expected one for each in the first row");
    if (std::count(names.begin(), names.end(), name) > 1) fail(fmt::format("the column '{}' is there twice", name));
  }
}

/// Numbers by their size, words by their letters.
bool comes_before(const std::string& a, const std::string& b) {
  const auto left = number_in(a), right = number_in(b);
  return left && right ? *left < *right || (*left == *right && a < b) : a < b;
}

}  // namespace

std::string_view without_spaces(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string TableFile::place(std::size_t row, const std::string& column) const {
  return fmt::format("{}:{}: column '{}'", path, rows[row].line, column);
}

std::string TableFile::header_place() const {
  return header.line > 0 ? fmt::format("{}:{}", path, header.line) : path;
}

TableFile parse_table(std::string_view text, const std::string& path) {
  TableFile file{path, {}, is_parquet(text) ? read_parquet(text, path) : parse_csv(text, path)};
  if (file.rows.empty()) {
    throw Error(ExitCode::data, fmt::format("{}: empty; expected a row with the names of the columns", path));
  }
  file.header = std::move(file.rows.front());
  file.rows.erase(file.rows.begin());
  check_header(file);
  if (file.rows.empty())
    throw Error(ExitCode::data, fmt::format("{}: expected rows behind the header, found none", path));
  for (const CsvRow& row : file.rows) {
    if (row.fields.size() != file.header.fields.size()) {
      throw Error(ExitCode::data, fmt::format("{}:{}: {} fields; the header has {}", path, row.line, row.fields.size(),
                                              file.header.fields.size()));
    }
  }
  return file;
}

std::size_t column_called(const TableFile& file, const std::string& name) {
  const auto& names = file.header.fields;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw Error(ExitCode::data, fmt::format("{}: expected a column '{}', found {}{}", file.header_place(), name,
                                            fmt::join(names, ", "), did_you_mean(name, names)));
  }
  return static_cast<std::size_t>(found - names.begin());
}

std::vector<std::string> columns_like(const TableFile& file, const std::vector<std::string>& words,
                                      const std::vector<std::string>& except) {
  const auto& header = file.header.fields;
  const auto among = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<std::string> found;
  for (const std::string& word : words) {
    if (word.find_first_of("*?[") == std::string::npos || among(header, word)) {
      if (const auto& name = header[column_called(file, word)]; !among(found, name)) found.push_back(name);
      continue;
    }
    const std::size_t before = found.size();
    for (const auto& name : header) {
      if (matches(word, name) && !among(except, name) && !among(found, name)) found.push_back(name);
    }
    if (found.size() == before) {
      throw Error(ExitCode::data,
                  fmt::format("{}: expected columns that '{}' matches{}{}, found {}", file.header_place(), word,
                              except.empty() ? "" : ", beside ", fmt::join(except, " and "), fmt::join(header, ", ")));
    }
  }
  return found;
}

bool is_missing(const std::string& value) {
  const auto text = without_spaces(value);
  return std::find(kMissing.begin(), kMissing.end(), text) != kMissing.end();
}

std::optional<double> number_in(const std::string& value) {
  auto text = without_spaces(value);
  if (text.starts_with('+')) text.remove_prefix(1);  // which from_chars does not take
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || end != text.data() + text.size() || error != std::errc()) return std::nullopt;
  return number;
}

ColumnValues look_at_column(const std::vector<TableFile>& files, const std::string& name) {
  ColumnValues values;
  std::set<std::string> distinct;
  for (const TableFile& file : files) {
    const std::size_t column = column_called(file, name);
    for (const CsvRow& row : file.rows) {
      const std::string& value = row.fields[column];
      if (is_missing(value)) {
        ++values.missing;
        continue;
      }
      ++(number_in(value) ? values.numbers : values.texts);
      distinct.insert(std::string(without_spaces(value)));
    }
  }
  values.categories.assign(distinct.begin(), distinct.end());
  if (values.texts == 0) std::sort(values.categories.begin(), values.categories.end(), comes_before);
  return values;
}

}  // namespace lockstep::data
