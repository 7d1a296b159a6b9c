// CSVs: the table, which must survive a round trip, the set of images that it names, and the numbers and categories
// that it holds.
#include <fmt/format.h>

#include "data/open.hpp"
#include "data/picture.hpp"
#include "data/readers/csv_table.hpp"
#include "fuzz/support.hpp"

using namespace lockstep;

namespace {

std::string write(const std::vector<data::CsvRow>& rows) {
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.fields.size(); ++i) {
      text += i > 0 ? ",\"" : "\"";
      for (const char c : row.fields[i]) text += c == '"' ? std::string("\"\"") : std::string(1, c);
      text += '"';
    }
    text += '\n';
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Folder folder;
  static const std::string grey = folder.put("a.png", data::png_of({4, 6, 200}));
  const std::string_view text = fuzz::text_of(data, size);
  std::vector<data::CsvRow> rows;
  if (!fuzz::accepts([&] { rows = data::parse_csv(text, "a.csv"); })) return 0;
  fuzz::insist("a table can be read after it was written", [&] {
    const auto again = data::parse_csv(write(rows), "a.csv");
    fuzz::require(again.size() == rows.size(), "a table has its rows after it was written");
    for (std::size_t i = 0; i < rows.size(); ++i) fuzz::require(again[i].fields == rows[i].fields, "a row is the same");
  });
  fuzz::accepts([&] {
    const std::string path = folder.put("a.csv", text);
    fuzz::read_samples(*data::open(fuzz::source(SourceKind::csv, {path}), {.threads = 1}));
  });
  fuzz::accepts([&] {
    SourceOptions table = fuzz::source(SourceKind::table, {folder.put("a.csv", text)});
    if (!rows.empty()) table.target = {rows.front().fields.back()};
    fuzz::read_samples(*data::open(table, {.threads = 1}));
  });
  fuzz::accepts([&] {
    SourceOptions texts = fuzz::source(SourceKind::texts, {folder.put("a.csv", text)});
    texts.context = 5;
    if (!rows.empty()) texts.text_column = texts.label_column = rows.front().fields.back();
    fuzz::read_samples(*data::open(texts, {.threads = 1}));
  });
  fuzz::accepts([&] {
    SourceOptions lines = fuzz::source(SourceKind::texts, {folder.put("a.jsonl", text)});
    lines.context = 5;
    fuzz::read_samples(*data::open(lines, {.threads = 1}));
  });
  return 0;
}
