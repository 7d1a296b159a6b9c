// Comma-separated values according to RFC 4180: quoted fields may contain commas, line ends and doubled quotes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::data {

struct CsvRow {
  int line = 0;  ///< in which the row begins, from 1
  std::vector<std::string> fields;
};

/// Skips empty lines. Throws Error(data) that begins with "where:line".
[[nodiscard]] std::vector<CsvRow> parse_csv(std::string_view text, const std::string& where);

}  // namespace lockstep::data
