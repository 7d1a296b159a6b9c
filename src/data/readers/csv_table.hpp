// Comma-separated values as RFC 4180 has them: quoted fields may hold commas, line ends and doubled quotes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::data {

struct CsvRow {
  int line = 0;  ///< where it begins, from 1
  std::vector<std::string> fields;
};

/// Empty lines are skipped. Throws Error(data) that begins with "where:line".
[[nodiscard]] std::vector<CsvRow> parse_csv(std::string_view text, const std::string& where);

}  // namespace lockstep::data
