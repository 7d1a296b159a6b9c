#include "data/readers/table_columns.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "core/nearest.hpp"
#include "core/words.hpp"
#include "data/parquet/parquet.hpp"
#include "data/readers/table_text.hpp"
#include "data/readers/utf8.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

constexpr std::size_t kListed = 20;  ///< names of columns in a message
/// What pandas calls columns without a name, and an index that it writes to Parquet.
constexpr std::string_view kUnnamed = "Unnamed: ", kIndexLevel = "__index_level_";

void check_header(const TableFile& file, bool had_unnamed) {
  const auto& names = file.header.fields;
  const auto fail = [&](const std::string& what) {
    throw Error(ExitCode::data, fmt::format("{}: {}", file.header_place(), what));
  };
  if (names.empty()) fail("expected the names of the columns in the first row, found none");
  const auto is_number = [](const auto& name) { return number_in(name).has_value(); };
  if (!had_unnamed && std::all_of(names.begin(), names.end(), is_number)) {
    fail(fmt::format("expected the names of the columns in the first row, found numbers: {}", few_of(names, kListed)));
  }
  for (const auto& name : names) {
    if (std::count(names.begin(), names.end(), name) > 1) fail(fmt::format("the column '{}' is there twice", name));
  }
}

/// Begins or ends with a quote: a part of a text that was cut at a comma, as of 'a, b'.
bool is_half_quoted(std::string_view field) {
  field = without_spaces(field);
  const auto is_quote = [](char c) { return c == '"' || c == '\''; };
  return !field.empty() && is_quote(field.front()) != is_quote(field.back());
}

/// R's write.table has a name less than columns: the first ones are the rows' own, and different.
bool has_row_names(const TableFile& file) {
  const std::size_t columns = file.header.fields.size();
  bool all_end = true;
  std::set<std::string_view> names;
  for (const CsvRow& row : file.rows) {
    if (row.fields.size() != columns + 1 || !names.insert(row.fields.front()).second) return false;
    if (std::any_of(row.fields.begin(), row.fields.end(), is_half_quoted)) return false;
    all_end = all_end && row.fields.back().empty();
  }
  return !all_end;
}

/// Makes all rows as long as the header.
void complete_rows(TableFile& file) {
  const std::size_t columns = file.header.fields.size();
  std::size_t short_rows = 0;
  std::string first;
  for (CsvRow& row : file.rows) {
    auto& fields = row.fields;
    while (fields.size() > columns && fields.back().empty()) fields.pop_back();  // a comma at the end of the line
    if (fields.size() > columns) row.fault = fmt::format("{} fields; the header has {}", fields.size(), columns);
    if (fields.size() < columns && ++short_rows == 1) {
      first = fmt::format("{}:{} has {}", file.path, row.line, fields.size());
    }
    fields.resize(columns);
    if (columns > 1 && fields == file.header.fields) row.fault = "the header again, as where files are joined";
  }
  if (short_rows == 0) return;
  file.warnings.push_back(fmt::format("{} fewer fields than the header, which has {} ({}): what they lack is missing",
                                      short_rows == 1 ? "1 row has" : fmt::format("{} rows have", short_rows), columns,
                                      first));
}

template <class T>
void erase_at(std::vector<T>& list, const std::vector<bool>& erased) {
  std::size_t to = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (erased[i]) continue;
    if (to != i) list[to] = std::move(list[i]);
    ++to;
  }
  list.resize(to);
}

/// Returns whether there are any. `row_names`: the header has none for them.
bool leave_out_unnamed(TableFile& file, bool row_names) {
  std::vector<bool> unnamed;
  for (auto& name : file.header.fields) {
    name = without_spaces(name);
    unnamed.push_back(name.empty());
    if (!name.empty()) continue;
    if (row_names && unnamed.size() == 1) {
      file.warnings.push_back(
          fmt::format("{}: a name less than rows have fields: the first field of each is taken for the row's own name, "
                      "as R writes it, and not used",
                      file.header_place()));
      continue;
    }
    file.warnings.push_back(fmt::format("{}: column {} has no name{}: it is not used", file.header_place(),
                                        unnamed.size(),
                                        unnamed.size() == 1 ? ", like the row names of pandas and R" : ""));
  }
  const bool any = std::find(unnamed.begin(), unnamed.end(), true) != unnamed.end();
  if (!any) return false;
  erase_at(file.header.fields, unnamed);
  erase_at(file.types, unnamed);
  for (CsvRow& row : file.rows) erase_at(row.fields, unnamed);
  return true;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) >= 0; });
}

/// The text with a ? for each byte that is not ASCII.
std::string readable(std::string_view text) {
  std::string out;
  for (const char c : text) out += is_ascii({&c, 1}) ? std::string(1, c) : "?";
  return out;
}

void require_utf8_values(const TableFile& file, const std::string& raw) {
  const auto check = [&](const std::string& text, const std::string& place) {
    if (is_ascii(text)) return;
    const std::size_t at = first_not_utf8(text);
    if (at == text.size()) return;
    throw Error(
        ExitCode::data,
        fmt::format("{}: expected UTF-8, found byte 0x{:02X} in '{}'; if the file is Latin-1, convert it: iconv "
                    "-f LATIN1 -t UTF-8",
                    place, static_cast<unsigned char>(text[at]), readable(text)));
  };
  const auto& names = file.header.fields;
  for (std::size_t i = 0; i < names.size(); ++i) {
    check(names[i], fmt::format("{}: the name of column {}", file.header_place(), i + 1));
  }
  for (std::size_t row = 0; row < file.rows.size(); ++row) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] != raw && !is_ascii(file.rows[row].fields[i])) {
        check(file.rows[row].fields[i], file.place(row, names[i]));
      }
    }
  }
}

/// 1,234 between 1 and 999, with three digits behind the mark, may also be a number of thousands.
bool may_be_thousands(std::string_view value, char mark) {
  const auto at = value.find(mark);
  const std::size_t sign = value.starts_with('-') || value.starts_with('+') ? 1 : 0;
  return at > sign && at - sign <= 3 && value[sign] != '0' && value.size() - at == 4;
}

/// If all numbers of a column that have the mark, a comma or a point, may be such.
void warn_of_thousands(std::size_t column, char mark, TableFile& file) {
  const std::string* first = nullptr;
  for (const CsvRow& row : file.rows) {
    const std::string& value = row.fields[column];
    if (value.find(mark) == std::string::npos ||
        !(mark == ',' ? has_decimal_comma(value) : number_in(value).has_value()))
      continue;
    if (!may_be_thousands(without_spaces(value), mark)) return;
    if (first == nullptr) first = &value;
  }
  if (first == nullptr) return;
  std::string with_point = *first;
  with_point[with_point.find(mark)] = '.';
  file.warnings.push_back(fmt::format("column '{}': '{}' is read as {}; if its {} group thousands, leave them out",
                                      file.header.fields[column], *first, with_point,
                                      mark == ',' ? "commas" : "points"));
}

/// Where fields end with semicolons, tabs or bars, decimal commas are points.
void read_decimal_commas(TableFile& file) {
  std::vector<std::size_t> with_points;
  bool has_commas = false;
  for (std::size_t column = 0; column < file.header.fields.size(); ++column) {
    std::size_t commas = 0, points = 0;
    for (const CsvRow& row : file.rows) {
      const auto& value = row.fields[column];
      commas += has_decimal_comma(value) ? 1 : 0;
      points += value.find('.') != std::string::npos && number_in(value) ? 1 : 0;
    }
    if (points > 0) with_points.push_back(column);
    if (commas == 0 || points > 0) continue;
    has_commas = true;
    warn_of_thousands(column, ',', file);
    for (CsvRow& row : file.rows) {
      std::string& value = row.fields[column];
      if (has_decimal_comma(value)) value[value.find(',')] = '.';
    }
  }
  for (const std::size_t column : with_points) {
    if (has_commas) warn_of_thousands(column, '.', file);
  }
}

/// Numbers by their size, words by their letters.
bool comes_before(const std::string& a, const std::string& b) {
  const auto left = number_in(a), right = number_in(b);
  return left && right ? *left < *right || (*left == *right && a < b) : a < b;
}

}  // namespace

std::string TableFile::place(std::size_t row, const std::string& column) const {
  return fmt::format("{}:{}: column '{}'", path, rows[row].line, column);
}

std::string TableFile::header_place() const {
  return header.line > 0 ? fmt::format("{}:{}", path, header.line) : path;
}

TableFile read_table(const std::string& path, const ByteCounter& counter, const std::string& raw) {
  return parse_table(read_packed_text(path, counter), path, raw);
}

TableFile parse_table(std::string bytes, const std::string& path, const std::string& raw) {
  TableFile file{path, {}, {}};
  char delimiter = ',';
  if (is_parquet(bytes)) {
    ParquetTable table = read_parquet(bytes, path);
    file.rows = std::move(table.rows);
    file.types = std::move(table.types);
    file.row_names = std::move(table.index);
    file.unreadable = std::move(table.unreadable);
  } else {
    require_rows(bytes, path);
    const std::string text = as_utf8(std::move(bytes), path);
    delimiter = delimiter_of(text);
    file.rows = parse_csv(text, path, delimiter);
  }
  if (file.rows.empty()) {
    throw Error(ExitCode::data, fmt::format("{}: empty; expected a row with the names of the columns", path));
  }
  file.header = std::move(file.rows.front());
  file.rows.erase(file.rows.begin());
  const bool row_names = has_row_names(file);
  if (row_names) file.header.fields.insert(file.header.fields.begin(), "");
  complete_rows(file);
  file.types.resize(file.header.fields.size());
  check_header(file, leave_out_unnamed(file, row_names));
  if (file.rows.empty())
    throw Error(ExitCode::data, fmt::format("{}: expected rows behind the header, found none", path));
  require_utf8_values(file, raw);
  if (delimiter != ',') read_decimal_commas(file);
  for (const auto& name : file.header.fields) {
    if (name.starts_with(kUnnamed) || name.starts_with(kIndexLevel)) file.row_names.push_back(name);
  }
  return file;
}

std::size_t column_called(const TableFile& file, const std::string& name) {
  const auto& names = file.header.fields;
  const auto found = std::find(names.begin(), names.end(), without_spaces(name));
  if (found == names.end()) {
    throw Error(ExitCode::data, fmt::format("{}: expected a column '{}', found {}{}", file.header_place(), name,
                                            few_of(names, kListed), did_you_mean(name, names)));
  }
  return found - names.begin();
}

std::size_t readable_column(const TableFile& file, const std::string& name) {
  if (const auto found = file.unreadable.find(name); found != file.unreadable.end()) {
    throw Error(ExitCode::data, fmt::format("{}: column '{}': {}; leave it out", file.path, name, found->second));
  }
  return column_called(file, name);
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
                              except.empty() ? "" : ", beside ", fmt::join(except, " and "), few_of(header, kListed)));
    }
  }
  return found;
}

namespace {

/// visit(value) for each that is not missing; returns how many are.
template <class Visit>
std::size_t for_present(const std::vector<TableFile>& files, const std::string& name, const Visit& visit) {
  std::size_t missing = 0;
  for (const TableFile& file : files) {
    const std::size_t column = readable_column(file, name);
    for (const CsvRow& row : file.rows) {
      if (!row.fault.empty()) continue;
      if (is_missing(row.fields[column])) {
        ++missing;
      } else {
        visit(row.fields[column]);
      }
    }
  }
  return missing;
}

/// Whether integers are n, n + 1, n + 2, ... in some order.
class RowCount {
 public:
  void add(double number) {
    whole_ = whole_ && std::nearbyint(number) == number && std::abs(number) < 1e15;
    if (whole_) numbers_.push_back(number);
  }
  [[nodiscard]] bool counts() {
    constexpr std::size_t kFewest = 50;
    if (!whole_ || numbers_.size() < kFewest) return false;
    std::sort(numbers_.begin(), numbers_.end());
    for (std::size_t i = 1; i < numbers_.size(); ++i) {
      if (numbers_[i] != numbers_[i - 1] + 1) return false;
    }
    return true;
  }

 private:
  bool whole_ = true;
  std::vector<double> numbers_;
};

/// Whether all numbers are dates without marks, three different ones or more.
class CompactDates {
 public:
  void add(double number, const std::string& text) {
    are_dates_ = are_dates_ && reads_as_date(number);
    if (!are_dates_) return;
    if (first_.empty()) first_ = text;
    if (different_.size() < kFewest) different_.insert(number);
  }
  /// One of them.
  std::string found() const { return are_dates_ && different_.size() == kFewest ? first_ : ""; }

 private:
  static constexpr std::size_t kFewest = 3;
  bool are_dates_ = true;
  std::string first_;
  std::set<double> different_;
};

/// As codes are written, such as those of the post: 00501.
bool is_padded(std::string_view value) {
  constexpr std::size_t kFewestDigits = 4;
  return value.size() >= kFewestDigits && value.front() == '0' &&
         std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

ColumnValues look_at_column(const std::vector<TableFile>& files, const std::string& name, bool categorical) {
  ColumnValues values;
  for (const TableFile& file : files) {
    values.typed_as_texts = values.typed_as_texts || file.types.at(column_called(file, name)) == ColumnType::texts;
  }
  std::size_t booleans = 0, commas = 0;
  RowCount row_count;
  CompactDates compact_dates;
  values.missing = for_present(files, name, [&](const std::string& value) {
    if (const auto number = number_in(value)) {
      ++values.numbers;
      row_count.add(*number);
      compact_dates.add(*number, value);
      if (values.rounded.empty() && loses_digits(value)) values.rounded = value;
      if (values.padded.empty() && is_padded(value)) values.padded = value;
      return;
    }
    if (values.other.empty()) values.other = value;
    ++(days_in(value) ? values.dates : values.texts);
    booleans += boolean_in(value) ? 1 : 0;
    if (has_decimal_comma(value) && commas++ == 0) values.decimal_comma = value;
  });
  values.are_booleans = booleans > 0 && booleans == values.present();
  if (commas == 0 || commas < values.texts) values.decimal_comma.clear();
  if (values.are_numbers()) values.compact_date = compact_dates.found();
  values.count_rows = values.missing == 0 && values.texts + values.dates == 0 && row_count.counts();
  if (values.are_numbers() && !categorical) return values;
  Spellings spellings;
  (void)for_present(files, name, [&](const std::string& value) { spellings.add(value); });
  values.categories = spellings.names();
  if (values.texts + values.dates == 0) std::sort(values.categories.begin(), values.categories.end(), comes_before);
  return values;
}

}  // namespace lockstep::data
