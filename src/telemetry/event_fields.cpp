#include "telemetry/event_fields.hpp"

#include <fmt/format.h>

#include "telemetry/text.hpp"

namespace lockstep::telemetry {

Fields::Fields(const Record& record) : left_(record) {
  std::erase_if(left_, [](const auto& field) { return field.second == Field(false); });  // "interrupted no" is no news
}

std::string Fields::take(const std::string& name) {
  const Field* field = find(left_, name);
  std::string text = field == nullptr ? "" : to_text(name, *field);
  drop(name);
  return text;
}

double Fields::take_number(const std::string& name) {
  const double value = number(left_, name);
  drop(name);
  return value;
}

std::map<std::string, double> Fields::take_map(const std::string& name) {
  const Field* field = find(left_, name);
  const auto* map = field == nullptr ? nullptr : std::get_if<std::map<std::string, double>>(field);
  if (map == nullptr) return {};
  auto values = *map;
  drop(name);
  return values;
}

void Fields::drop(const std::string& name) {
  std::erase_if(left_, [&](const auto& field) { return field.first == name; });
}

void Line::add(const std::string& part) {
  if (!part.empty()) text_ += (text_.empty() ? "" : separator_) + part;
}

void Line::add_metrics(std::map<std::string, double> metrics) {
  if (const auto loss = metrics.extract("loss")) add("loss " + fixed_number(loss.mapped()));
  for (const auto& [name, value] : metrics) add(fmt::format("{} {}", spaced(name), fixed_number(value)));
}

void Line::add_rest(const Fields& fields) {
  for (const auto& [name, field] : fields.left()) add(fmt::format("{} {}", spaced(name), to_text(name, field)));
}

std::string counted(const std::string& count, const std::string& thing) {
  return fmt::format("{} {}{}", count, thing, count == "1" ? "" : "s");
}

}  // namespace lockstep::telemetry
