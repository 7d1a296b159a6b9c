#include "tools/sweep/scrape_targets.hpp"

#include <nlohmann/json.hpp>

namespace lockstep::sweep {

std::string targets_of(const std::string& sweep, const std::vector<TrialTargets>& trials) {
  using Json = nlohmann::ordered_json;
  Json all = Json::array();
  for (const auto& [trial, text] : trials) {
    const Json own = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!own.is_array()) continue;
    for (Json group : own) {
      if (!group.is_object() || !group["labels"].is_object()) continue;
      group["labels"]["sweep"] = sweep;
      group["labels"]["trial"] = std::to_string(trial);
      all.push_back(std::move(group));
    }
  }
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::sweep
