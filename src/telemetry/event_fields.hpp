// Taking a record's fields one by one, and putting parts of lines together; for the texts of events.
#pragma once

#include <map>
#include <string>

#include "telemetry/sink.hpp"

namespace lockstep::telemetry {

/// Takes fields out of a record, so that what is left can be shown as it is.
class Fields {
 public:
  explicit Fields(const Record& record);

  [[nodiscard]] bool has(const std::string& name) const { return find(left_, name) != nullptr; }
  /// As text; "" where it is absent.
  [[nodiscard]] std::string take(const std::string& name);
  [[nodiscard]] double take_number(const std::string& name);
  [[nodiscard]] std::map<std::string, double> take_map(const std::string& name);
  void drop(const std::string& name);
  [[nodiscard]] const Record& left() const { return left_; }

 private:
  Record left_;
};

/// Parts with a separator between them; empty parts are left out.
class Line {
 public:
  explicit Line(std::string separator = "  ") : separator_(std::move(separator)) {}
  void add(const std::string& part);
  /// "loss 0.1234", the loss first.
  void add_metrics(std::map<std::string, double> metrics);
  /// What is left, as "name value".
  void add_rest(const Fields& fields);
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool empty() const { return text_.empty(); }

 private:
  std::string separator_, text_;
};

/// "1 rank", "2 ranks"
[[nodiscard]] std::string counted(const std::string& count, const std::string& thing);

}  // namespace lockstep::telemetry
