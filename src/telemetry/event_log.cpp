#include "telemetry/event_log.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "lockstep/error.hpp"

namespace lockstep::telemetry {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json to_json(const std::map<std::string, double>& values) {
  Json object = Json::object();
  for (const auto& [name, value] : values) object[name] = to_json(value);
  return object;
}

template <class T>
Json to_json(const T& value) {
  return value;
}

double number_of(const Json& value) {
  if (value.is_number()) return value.get<double>();
  const auto text = value.is_string() ? value.get<std::string>() : "";
  if (text == "inf") return INFINITY;
  return text == "-inf" ? -INFINITY : NAN;
}

Field to_field(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  std::map<std::string, double> numbers;
  for (const auto& [key, number] : value.items()) numbers[key] = number_of(number);
  return numbers;
}

class JsonLog : public Sink {
 public:
  explicit JsonLog(std::FILE* file) : file_(file) {}

  void event(const std::string& name, const Record& record) override {
    const std::string text = event_line(name, record) + "\n";
    if (std::fwrite(text.data(), 1, text.size(), file_) != text.size() || std::fflush(file_) != 0) {
      throw Error(ExitCode::infrastructure, fmt::format("cannot write the event log: {}", std::strerror(errno)));
    }
  }

 private:
  std::FILE* file_;
};

}  // namespace

std::string event_line(const std::string& name, const Record& record) {
  Json line;
  line["event"] = name;
  for (const auto& [key, field] : record) line[key] = std::visit([](const auto& v) { return to_json(v); }, field);
  // A path may hold bytes that are no UTF-8: they are replaced, not refused.
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<std::pair<std::string, Record>> parse_event(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("event") || !json["event"].is_string()) return std::nullopt;
  std::pair<std::string, Record> event{json["event"].get<std::string>(), {}};
  for (const auto& [key, value] : json.items()) {
    if (key != "event") event.second.emplace_back(key, to_field(value));
  }
  return event;
}

std::unique_ptr<Sink> make_json_log(std::FILE* file) {
  return std::make_unique<JsonLog>(file);
}

}  // namespace lockstep::telemetry
