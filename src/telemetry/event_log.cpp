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

class JsonLog : public Sink {
 public:
  explicit JsonLog(std::FILE* file) : file_(file) {}

  void event(const std::string& name, const Record& record) override {
    Json line;
    line["event"] = name;
    for (const auto& [key, field] : record) line[key] = std::visit([](const auto& v) { return to_json(v); }, field);
    // A path may hold bytes that are no UTF-8: they are replaced, not refused.
    const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    if (std::fwrite(text.data(), 1, text.size(), file_) != text.size() || std::fflush(file_) != 0) {
      throw Error(ExitCode::infrastructure, fmt::format("cannot write the event log: {}", std::strerror(errno)));
    }
  }

 private:
  std::FILE* file_;
};

}  // namespace

std::unique_ptr<Sink> make_json_log(std::FILE* file) {
  return std::make_unique<JsonLog>(file);
}

}  // namespace lockstep::telemetry
