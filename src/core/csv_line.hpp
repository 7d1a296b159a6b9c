// Lines of CSV as RFC 4180 has them: fields are quoted where they must be.
#pragma once

#include <string>
#include <vector>

namespace lockstep {

[[nodiscard]] inline std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

/// With its end of line.
[[nodiscard]] inline std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (std::size_t i = 0; i < fields.size(); ++i) line += (i > 0 ? "," : "") + csv_field(fields[i]);
  return line + "\n";
}

}  // namespace lockstep
