#include "telemetry/scrape_targets.hpp"

#include <nlohmann/json.hpp>

#include "telemetry/exporter.hpp"

namespace lockstep::telemetry {

std::string targets_json(const std::vector<ScrapeTarget>& targets, const std::string& address,
                         const MetricLabels& labels) {
  const bool any = address == "0.0.0.0" || address == "::";
  auto groups = nlohmann::ordered_json::array();
  for (const ScrapeTarget& target : targets) {
    nlohmann::ordered_json own;
    for (const auto& [name, value] : labels) own[name] = value;
    own["host"] = target.host;
    groups.push_back({{"targets", {endpoint_text(any ? target.host : address, target.port)}}, {"labels", own}});
  }
  return groups.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::telemetry
