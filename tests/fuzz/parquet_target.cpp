// Parquet files: every row has a field for each column, and a table can be made of them or is refused.
#include "data/open.hpp"
#include "data/parquet/parquet.hpp"
#include "fuzz/support.hpp"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Folder folder;
  const std::string_view bytes = fuzz::text_of(data, size);
  data::UnpackLimits limits;
  limits.held_without_copy = limits.small;  // a table of gigabytes is sound, but nothing to wait for
  std::vector<data::CsvRow> rows;
  if (!fuzz::accepts([&] { rows = data::read_parquet(bytes, "a.parquet", limits).rows; })) return 0;
  for (const auto& row : rows) {
    fuzz::require(row.fields.size() == rows.front().fields.size(), "a row has a field for each column");
  }
  fuzz::accepts([&] {
    SourceOptions table = fuzz::source(SourceKind::table, {folder.put("a.parquet", bytes)});
    table.target = {rows.front().fields.back()};
    fuzz::read_samples(*data::open(table, {.threads = 1}));
  });
  return 0;
}
