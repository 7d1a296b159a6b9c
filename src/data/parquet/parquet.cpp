#include "data/parquet/parquet.hpp"

#include <fmt/format.h>

#include "data/parquet/column.hpp"
#include "data/parquet/compact.hpp"
#include "data/parquet/pages.hpp"
#include "data/unpack.hpp"

namespace lockstep::data {
namespace {

constexpr std::string_view kMark = "PAR1", kEncryptedMark = "PARE";

/// Numbers of fields are those of parquet.thrift.
constexpr int kSchema = 2, kRowGroups = 4;
constexpr int kGroupColumns = 1, kGroupRows = 3;

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

/// The schema is a tree, written from the root down; here its leaves are all there is.
std::vector<ParquetColumn> columns_of(const CompactValue& footer) {
  const auto& schema = footer.at(kSchema).elements;
  std::vector<ParquetColumn> columns;
  for (std::size_t i = 1; i < schema.size(); ++i) columns.push_back(parquet_column(schema[i]));
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

std::vector<CsvRow> rows_of(std::string_view bytes, const std::string& path) {
  const CompactValue footer = read_parquet_footer(bytes);
  const auto columns = columns_of(footer);
  const UnpackBudget budget(path, bytes.size(), {});
  std::uint64_t taken = 0;
  const auto count_bytes = [&](std::uint64_t more) { budget.check(taken += more); };

  std::vector<CsvRow> rows(1);
  for (const ParquetColumn& column : columns) rows[0].fields.push_back(column.name);
  for (const CompactValue& group : footer.at(kRowGroups).elements) {
    const auto& chunks = group.at(kGroupColumns).elements;
    if (chunks.size() != columns.size()) throw Error(ExitCode::data, "damaged: a row group lacks columns");
    std::vector<std::vector<std::string>> texts;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      texts.push_back(placed(path, fmt::format("column '{}'", columns[i].name),
                             [&] { return read_column_chunk(bytes, chunks[i], columns[i], count_bytes); }));
      if (std::ssize(texts.back()) != group.at(kGroupRows).number) {
        throw Error(ExitCode::data, fmt::format("damaged: column '{}' has {} values where there are {} rows",
                                                columns[i].name, texts.back().size(), group.at(kGroupRows).number));
      }
    }
    for (std::size_t row = 0; row < texts[0].size(); ++row) {
      CsvRow& added = rows.emplace_back();
      added.line = static_cast<int>(rows.size()) - 1;
      for (auto& column : texts) added.fields.push_back(std::move(column[row]));
    }
  }
  return rows;
}

}  // namespace

bool is_parquet(std::string_view bytes) {
  return bytes.starts_with(kMark);
}

std::vector<CsvRow> read_parquet(std::string_view bytes, const std::string& path) {
  return placed(path, path, [&] { return rows_of(bytes, path); });
}

}  // namespace lockstep::data
