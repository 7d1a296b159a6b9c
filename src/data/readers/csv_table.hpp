// Delimited values according to RFC 4180: quoted fields may contain delimiters, line ends and doubled quotes. A line
// ends with LF, CR LF or CR.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::data {

struct CsvRow {
  int line = 0;  ///< in which the row begins, from 1
  std::vector<std::string> fields;
  std::string fault = {};  ///< set if it is bad: "4 fields; the header has 3"
};

/// A comma, or the semicolon, tab or bar that there are more of in the header, and as many in the row behind it.
[[nodiscard]] char delimiter_of(std::string_view text);

/// Skips empty lines. Throws Error(data) that begins with "where:line".
[[nodiscard]] std::vector<CsvRow> parse_csv(std::string_view text, const std::string& where, char delimiter = ',');

}  // namespace lockstep::data
