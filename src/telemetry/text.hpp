// Numbers as people read them.
#pragma once

#include <string>

#include "telemetry/sink.hpp"

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
/// 1500 -> "1.5 kB"
[[nodiscard]] std::string byte_count(double bytes);
/// Any field. The name says what a number is: "..._seconds..." and "..._bytes..." get their units. Maps are
/// "a 1, b 2"; those "by_rank" are the values in order of the ranks, or their range where there are many.
[[nodiscard]] std::string to_text(const std::string& name, const Field& field);
/// A GPU's driver: its own version, where it is known, and the CUDA that it runs: "580.65.06, for CUDA 13.0"
[[nodiscard]] std::string driver_text(const std::string& version, const std::string& cuda);
/// "data_wait_seconds" -> "data wait seconds"
[[nodiscard]] std::string spaced(std::string name);

}  // namespace lockstep::telemetry
