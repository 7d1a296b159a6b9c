#include "data/parquet/parquet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/untrusted.hpp"
#include "data/parquet/budget.hpp"
#include "data/parquet/column.hpp"
#include "data/parquet/compact.hpp"
#include "data/parquet/pages.hpp"

namespace lockstep::data {
namespace {

constexpr std::string_view kMark = "PAR1", kEncryptedMark = "PARE";

/// Numbers of fields are those of parquet.thrift.
constexpr int kSchema = 2, kRowGroups = 4, kNotes = 5;
constexpr int kNoteKey = 1, kNoteValue = 2;
constexpr int kGroupColumns = 1, kGroupRows = 3;
constexpr std::int64_t kMostRows = std::int64_t{1} << 40;

/// The footer: its length and a mark stand behind it.
CompactValue read_parquet_footer(std::string_view bytes) {
  const std::size_t tail = sizeof(std::uint32_t) + kMark.size();
  if (bytes.size() < kMark.size() + tail || (!bytes.ends_with(kMark) && !bytes.ends_with(kEncryptedMark))) {
    throw Error(ExitCode::data, "damaged: it begins as a Parquet file and does not end as one");
  }
  if (bytes.ends_with(kEncryptedMark)) throw Error(ExitCode::data, "encrypted; write the file without encryption");
  ByteReader length(bytes.substr(bytes.size() - tail), "damaged: it has no footer");
  const auto of_footer = length.value<std::uint32_t>();
  if (of_footer > bytes.size() - tail) throw Error(ExitCode::data, "damaged: its footer is longer than the file");
  ByteReader footer(bytes.substr(bytes.size() - tail - of_footer, of_footer), "damaged: its footer ends too early");
  return read_compact(footer);
}

/// The schema is a tree, written from the root down. Its leaves have a chunk each in a row group; the columns are what
/// is right below the root. `leaves`: how many there are.
std::vector<ParquetColumn> columns_of(const CompactValue& footer, std::size_t& leaves) {
  const auto& schema = footer.at(kSchema).elements;
  std::vector<ParquetColumn> columns;
  leaves = 0;
  for (std::size_t i = 1; i < schema.size();) {
    columns.push_back(parquet_column(schema[i]));
    columns.back().chunk = leaves;
    for (std::int64_t open = 1; open > 0 && i < schema.size(); ++i) {
      const std::int64_t children = children_of(schema[i]);
      open += std::min<std::int64_t>(children, std::ssize(schema)) - 1;
      if (children == 0) ++leaves;
    }
  }
  if (columns.empty()) throw Error(ExitCode::data, "expected columns, found none");
  return columns;
}

/// Runs `body`; an Error that does not say in which file gets `place` before it.
template <class Body>
auto placed(const std::string& path, const std::string& place, const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    const std::string_view what = error.what();
    if (what.starts_with(path)) throw;
    throw Error(error.code(), fmt::format("{}: {}", place, what));
  }
}

/// What pandas' own description of the frame says.
struct PandasFrame {
  std::vector<std::string> index, categorical;  ///< names of columns
};

PandasFrame pandas_frame(const CompactValue& footer) {
  PandasFrame found;
  const CompactValue* const notes = footer.find(kNotes);
  for (const CompactValue& note : notes == nullptr ? std::vector<CompactValue>() : notes->elements) {
    const CompactValue *const key = note.find(kNoteKey), *const value = note.find(kNoteValue);
    if (key == nullptr || value == nullptr || key->bytes != "pandas" || nests_too_deep(value->bytes)) continue;
    const auto frame = nlohmann::json::parse(value->bytes, nullptr, false);
    const auto list = [&](const char* name) {
      return frame.is_object() && frame.contains(name) && frame[name].is_array() ? frame[name]
                                                                                 : nlohmann::json::array();
    };
    for (const auto& column : list("index_columns")) {
      if (column.is_string()) found.index.push_back(column.get<std::string>());
    }
    for (const auto& column : list("columns")) {
      const auto text = [&](const char* name) {
        const bool has = column.is_object() && column.contains(name) && column[name].is_string();
        return has ? column[name].get<std::string>() : "";
      };
      if (text("pandas_type") == "categorical") found.categorical.push_back(text("field_name"));
    }
  }
  return found;
}

ColumnType type_of(const ParquetColumn& column, const PandasFrame& frame) {
  const auto& categorical = frame.categorical;
  if (std::find(categorical.begin(), categorical.end(), column.name) != categorical.end())
    return ColumnType::categories;
  return column.meaning == ParquetColumn::Meaning::text ? ColumnType::texts : ColumnType::open;
}

/// Before any of them is unpacked.
void count_rows(const CompactValue& footer, std::size_t columns, ParquetBudget& budget) {
  std::int64_t rows = 0;
  for (const CompactValue& group : footer.at(kRowGroups).elements) {
    const std::int64_t more = group.at(kGroupRows).number;
    if (more < 0 || more > kMostRows - rows) throw Error(ExitCode::data, "damaged: a row group has too many rows");
    rows += more;
  }
  budget.hold_rows(rows, columns);
}

ParquetTable table_of(std::string_view bytes, const std::string& path, const UnpackLimits& limits) {
  const CompactValue footer = read_parquet_footer(bytes);
  std::size_t leaves = 0;
  const auto columns = columns_of(footer, leaves);
  const PandasFrame frame = pandas_frame(footer);
  ParquetTable table{{}, {}, frame.index, {}};
  for (const ParquetColumn& column : columns) {
    if (!column.refusal.empty()) table.unreadable[column.name] = column.refusal;
    table.types.push_back(type_of(column, frame));
  }
  const auto is_readable = [](const ParquetColumn& column) { return column.refusal.empty(); };
  const auto first = std::find_if(columns.begin(), columns.end(), is_readable);
  if (first == columns.end()) {
    throw Error(ExitCode::data, fmt::format("column '{}': {}", columns[0].name, columns[0].refusal));
  }
  const std::size_t readable = first - columns.begin();
  ParquetBudget budget(path, bytes.size(), limits);
  count_rows(footer, columns.size(), budget);

  std::vector<CsvRow>& rows = table.rows;
  rows.resize(1);
  for (const ParquetColumn& column : columns) rows[0].fields.push_back(column.name);
  for (const CompactValue& group : footer.at(kRowGroups).elements) {
    const auto& chunks = group.at(kGroupColumns).elements;
    if (chunks.size() != leaves) throw Error(ExitCode::data, "damaged: a row group lacks columns");
    std::vector<std::vector<std::string>> texts;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const ParquetColumn& column = columns[i];
      if (!column.refusal.empty()) {
        texts.emplace_back();
        continue;
      }
      texts.push_back(placed(path, fmt::format("column '{}'", column.name), [&] {
        return read_column_chunk(bytes, chunks[column.chunk], column, group.at(kGroupRows).number, budget);
      }));
    }
    for (std::size_t row = 0; row < texts[readable].size(); ++row) {
      CsvRow& added = rows.emplace_back();
      added.line = static_cast<int>(rows.size()) - 1;
      for (auto& column : texts) added.fields.push_back(column.empty() ? "" : std::move(column[row]));
    }
  }
  return table;
}

}  // namespace

bool is_parquet(std::string_view bytes) {
  return bytes.starts_with(kMark);
}

ParquetTable read_parquet(std::string_view bytes, const std::string& path, const UnpackLimits& limits) {
  return placed(path, path, [&] { return table_of(bytes, path, limits); });
}

}  // namespace lockstep::data
