#include "observe/telemetry/event_json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/untrusted.hpp"
#include "observe/telemetry/event_schema.hpp"
#include "observe/telemetry/unix_time.hpp"

namespace lockstep::telemetry {
namespace {

using events::ByName, events::ByRank;
using Json = nlohmann::ordered_json;

Json to_json(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json to_json(const ByName& values) {
  Json object = Json::object();
  for (const auto& [name, value] : values) object[name] = to_json(value);
  return object;
}

Json to_json(const ByRank& values) {
  ByName by_name;  // in the order of the texts, "10" before "2", as in earlier versions
  for (const auto& [rank, value] : values) by_name[std::to_string(rank)] = value;
  return to_json(by_name);
}

template <class T>
Json to_json(const T& value) {
  return value;
}

// For each type of field: whether a JSON value has it, and its name in messages and documentation.

bool read(const Json& json, bool& value) {
  if (json.is_boolean()) value = json.get<bool>();
  return json.is_boolean();
}

bool read(const Json& json, std::int64_t& value) {
  if (!json.is_number_integer()) return false;
  if (json.is_number_unsigned() && !std::in_range<std::int64_t>(json.get<std::uint64_t>())) return false;
  value = json.get<std::int64_t>();
  return true;
}

bool read(const Json& json, double& value) {
  if (json.is_number()) {
    value = json.get<double>();
    return true;
  }
  const auto text = json.is_string() ? json.get<std::string>() : "";
  value = text == "inf" ? INFINITY : text == "-inf" ? -INFINITY : NAN;
  return text == "inf" || text == "-inf" || text == "nan";
}

bool read(const Json& json, std::string& value) {
  if (json.is_string()) value = json.get<std::string>();
  return json.is_string();
}

bool read(const Json& json, ByName& values) {
  if (!json.is_object()) return false;
  for (const auto& [name, value] : json.items()) {
    if (!read(value, values[name])) return false;
  }
  return true;
}

bool read(const Json& json, ByRank& values) {
  ByName by_name;
  if (!read(json, by_name)) return false;
  for (const auto& [name, value] : by_name) {
    if (name.empty() || name.size() > 9 || name.find_first_not_of("0123456789") != std::string::npos) return false;
    values[std::stoi(name)] = value;
  }
  return true;
}

template <class T>
bool read(const Json& json, std::optional<T>& value) {
  return read(json, value.emplace());
}

const char* type_of(bool) {
  return "boolean";
}
const char* type_of(std::int64_t) {
  return "integer";
}
const char* type_of(double) {
  return "number";
}
const char* type_of(const std::string&) {
  return "text";
}
const char* type_of(const ByName&) {
  return "numbers by name";
}
const char* type_of(const ByRank&) {
  return "numbers by rank";
}

template <class T>
const char* type_of(const std::optional<T>&) {
  return type_of(T{});
}

/// "a number", "an integer", "numbers by rank"
std::string with_article(const std::string& type) {
  if (type.starts_with("numbers")) return type;
  return (type == "integer" ? "an " : "a ") + type;
}

const char* unit_text(events::Unit unit) {
  switch (unit) {
    case events::Unit::none:
      return "";
    case events::Unit::seconds:
      return "s";
    case events::Unit::bytes:
      return "bytes";
    case events::Unit::megahertz:
      return "MHz";
    case events::Unit::joules:
      return "J";
    case events::Unit::samples_per_second:
      return "samples/s";
  }
  return "";
}

template <class T>
constexpr bool kIsOptional = false;
template <class T>
constexpr bool kIsOptional<std::optional<T>> = true;

template <class Kind>
std::string read_fields(const Json& json, Kind& event) {
  std::string damage;
  for_each_field(event, [&](const char* name, auto& value, events::Unit /*unit*/) {
    using T = std::remove_reference_t<decltype(value)>;
    const auto found = json.find(name);
    if (found == json.end()) {
      if constexpr (std::is_same_v<T, double>) value = NAN;
    } else if (!read(*found, value) && damage.empty()) {
      damage = fmt::format("expected {} as '{}'", with_article(type_of(value)), name);
    }
  });
  return damage;
}

}  // namespace

std::string event_line(const events::Event& event) {
  Json line;
  std::visit(
      [&](const auto& kind) {
        line["event"] = kind.kName;
        for_each_field(kind, [&](const char* name, const auto& value, events::Unit /*unit*/) {
          if constexpr (kIsOptional<std::remove_cvref_t<decltype(value)>>) {
            if (value) line[name] = to_json(*value);
          } else {
            line[name] = to_json(value);
          }
        });
      },
      event);
  // A path may contain bytes that are not UTF-8: they are replaced.
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string with_time(const std::string& line) {
  return fmt::format("{},\"time\":{:.3f}}}\n", line.substr(0, line.size() - 1), unix_time());
}

ReadEvent read_event(const std::string& line) {
  ReadEvent result;
  Json json = nests_too_deep(line) ? Json() : Json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("event")) return result;
  for_each_kind([&](auto kind) {
    if (json["event"] != kind.kName) return;
    result.name = kind.kName;
    result.damage = read_fields(json, kind);
    if (json.contains("time") && !read(json["time"], result.time)) result.damage = "expected a number as 'time'";
    if (result.damage.empty()) result.event = std::move(kind);
  });
  return result;
}

std::string events_markdown() {
  std::string text = "|event|field|type|unit|meaning|\n|---|---|---|---|---|\n";
  for_each_kind([&](const auto& kind) {
    text += fmt::format("|`{}`||||{}|\n", kind.kName, kind.kDoc);
    kind.describe([&](const char* name, auto member, const char* doc, events::Unit unit = {}) {
      const auto& value = kind.*member;
      const bool optional = kIsOptional<std::remove_cvref_t<decltype(value)>>;
      text += fmt::format("||`{}`|{}{}|{}|{}|\n", name, type_of(value), optional ? "?" : "", unit_text(unit), doc);
    });
  });
  return text;
}

}  // namespace lockstep::telemetry
