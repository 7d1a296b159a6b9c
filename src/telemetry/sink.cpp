#include "telemetry/sink.hpp"

#include <algorithm>

namespace lockstep::telemetry {
namespace {

class Tee : public Sink {
 public:
  explicit Tee(std::vector<std::unique_ptr<Sink>> sinks) : sinks_(std::move(sinks)) {}
  void event(const std::string& name, const Record& record) override {
    for (const auto& sink : sinks_) sink->event(name, record);
  }

 private:
  std::vector<std::unique_ptr<Sink>> sinks_;
};

}  // namespace

std::unique_ptr<Sink> make_tee(std::vector<std::unique_ptr<Sink>> sinks) {
  return std::make_unique<Tee>(std::move(sinks));
}

const Field* find(const Record& record, const std::string& name) {
  const auto found = std::find_if(record.begin(), record.end(), [&](const auto& field) { return field.first == name; });
  return found == record.end() ? nullptr : &found->second;
}

double number(const Record& record, const std::string& name, double fallback) {
  const Field* field = find(record, name);
  if (field == nullptr) return fallback;
  if (const auto* integer = std::get_if<std::int64_t>(field)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(field)) return *real;
  return fallback;
}

}  // namespace lockstep::telemetry
