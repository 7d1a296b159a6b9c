// The JSON Schema: the rules' own, below the root keys that the file may have.
#include <nlohmann/json.hpp>

#include "config/root_keys.hpp"
#include "config/sections.hpp"

namespace lockstep::config {

std::string schema(const Catalogue& catalogue) {
  Json json = {{"$schema", "http://json-schema.org/draft-07/schema#"},
               {"title", "lockstep job"},
               {"description", "One training run. Root keys other than `job` belong to the Helm chart."},
               {"type", "object"},
               {"additionalProperties", false},
               {"required", Json::array({"job"})},
               {"properties", Json::object()}};
  json["properties"]["job"] = job_section(catalogue).rule->schema();
  json["properties"]["job"]["description"] = "the training run";
  for (const auto& key : chart_keys()) {
    json["properties"][key] = Json{{"description", "of the Helm chart; `lockstep` does not read it"}};
  }
  return json.dump(2);
}

}  // namespace lockstep::config
