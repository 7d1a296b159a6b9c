#include "run/plan/profile.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "core/files.hpp"
#include "lockstep/error.hpp"

namespace lockstep::plan {

namespace {

constexpr int kFormat = 1;

struct RateField {
  const char* name;
  double Rates::*value;
};

constexpr std::array<RateField, 7> kFields = {{{"matmul_flops_per_second", &Rates::matmul_flops},
                                               {"convolution_flops_per_second", &Rates::conv_flops},
                                               {"elementwise_bytes_per_second", &Rates::element_bytes},
                                               {"gradient_add_bytes_per_second", &Rates::add_bytes},
                                               {"update_bytes_per_second", &Rates::update_bytes},
                                               {"message_seconds", &Rates::message_seconds},
                                               {"message_bytes_per_second", &Rates::message_bytes}}};

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw Error(ExitCode::data, fmt::format("{}: {}; make one with `lockstep bench device --out {}`", path, why, path));
}

}  // namespace

std::string profile_text(const Rates& rates) {
  nlohmann::ordered_json json;
  json["format"] = kFormat;
  json["device"] = rates.device;
  json["cores"] = rates.cores;
  json["memory_bytes"] = rates.memory;
  for (const RateField& field : kFields) json[field.name] = rates.*field.value;
  return json.dump(2) + "\n";
}

Rates read_profile(const std::string& path) {
  const auto text = read_whole_file(path);
  if (!text) {
    throw Error(ExitCode::usage,
                fmt::format("--profile: expected a file of `lockstep bench device`, found none at {}", path));
  }
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  if (!json.is_object()) refuse(path, "expected a profile, found no JSON object");
  if (json.value("format", nlohmann::json()) != nlohmann::json(kFormat)) {
    refuse(path, fmt::format("expected a profile of format {}, found another, or none", kFormat));
  }
  const auto number = [&](const char* name) {
    const auto found = json.find(name);
    if (found == json.end() || !found->is_number() || !(found->get<double>() > 0)) {
      refuse(path, fmt::format("{}: expected a number above 0, found {}", name,
                               found == json.end() ? "none" : found->dump()));
    }
    return found->get<double>();
  };
  Rates rates;
  for (const RateField& field : kFields) rates.*field.value = number(field.name);
  rates.cores = number("cores");
  rates.memory = number("memory_bytes");
  if (const auto device = json.find("device"); device != json.end() && device->is_string()) {
    rates.device = device->get<std::string>();
  }
  return rates;
}

}  // namespace lockstep::plan
