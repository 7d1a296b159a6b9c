// Numbers and fields of events as text, and lines composed of parts.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/events.hpp"

namespace lockstep::telemetry {

/// 52650 -> "52,650"
[[nodiscard]] std::string grouped(std::int64_t value);
/// Four significant digits: 0.12345 -> "0.1235", 8071.9 -> "8,072", 1e-05 -> "1e-05"
[[nodiscard]] std::string short_number(double value);
/// For columns: 0.65331 -> "0.6533", 12.5 -> "12.5000", 1.2e-05 -> "1.20e-05", 8071.9 -> "8,072"
[[nodiscard]] std::string fixed_number(double value);
/// 0.123 -> "0.123 s", 12.3 -> "12.3 s", 62 -> "1:02", 3723 -> "1:02:03"
[[nodiscard]] std::string duration(double seconds);
/// 4.7 -> "0:05", 3723 -> "1:02:03"
[[nodiscard]] std::string clock_time(double seconds);
/// "1 rank", "2,000 ranks"
[[nodiscard]] std::string counted(std::int64_t count, const std::string& thing);
/// "data_wait_seconds" -> "data wait seconds"
[[nodiscard]] std::string spaced(std::string name);
/// A GPU's driver: its own version, if known, and the newest CUDA that it supports: "580.65.06, for CUDA 13.0"
[[nodiscard]] std::string driver_text(const std::string& version, const std::string& cuda);

// Fields of events. Numbers by name are "a 1, b 2"; numbers by rank are listed in order of the ranks, or, if there are
// many, as a range.
[[nodiscard]] std::string to_text(double value, events::Unit unit);
[[nodiscard]] std::string to_text(std::int64_t value, events::Unit unit);
[[nodiscard]] std::string to_text(bool value, events::Unit unit);
[[nodiscard]] std::string to_text(const std::string& value, events::Unit unit);
[[nodiscard]] std::string to_text(const events::ByName& values, events::Unit unit);
[[nodiscard]] std::string to_text(const events::ByRank& values, events::Unit unit);

/// Parts with a separator between them; empty parts are skipped.
class Line {
 public:
  explicit Line(std::string separator = "  ") : separator_(std::move(separator)) {}
  void add(const std::string& part) {
    if (!part.empty()) text_ += (text_.empty() ? "" : separator_) + part;
  }
  const std::string& text() const { return text_; }
  bool empty() const { return text_.empty(); }

 private:
  std::string separator_, text_;
};

}  // namespace lockstep::telemetry
