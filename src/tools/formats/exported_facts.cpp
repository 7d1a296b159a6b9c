// What an export tells of its data.
#include <nlohmann/json.hpp>
#include <variant>

#include "tools/formats/exported_model.hpp"

namespace lockstep::formats {

namespace {

using Json = nlohmann::ordered_json;

/// A step as a job file has it.
Json json_of(const AugmentOptions& step) {
  Json settings = Json::object();
  const auto add = [&settings](const std::string& name, const auto& value) {
    if constexpr (requires { settings[name] = value; }) {
      settings[name] = value;
    } else {
      settings[name] = to_string(Attribute(value));
    }
  };
  for (const auto& [name, value] : step.attributes.all()) {
    std::visit([&, &key = name](const auto& held) { add(key, held); }, value);
  }
  return {{step.name, settings}};
}

std::string facts_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string as_utf8(const std::string& text) {
  return Json::parse(facts_text(Json(text))).get<std::string>();
}

std::string exported_facts(const ExportedModel& model) {
  Json facts = model.data.empty() ? Json::object() : Json::parse(model.data);
  facts["prepare"] = Json::array();
  for (const AugmentOptions& step : model.prepare) facts["prepare"].push_back(json_of(step));
  if (!model.columns.empty()) facts["missing"] = model.missing;
  if (model.ignores_unknown) facts["unknown"] = "ignore";
  for (const ExportedInput& input : model.inputs) facts["inputs"].push_back(input.feature.name);
  for (const ExportedOutput& output : model.outputs) {
    facts["outputs"].push_back({{"name", output.name},
                                {"shape", output.shape},
                                {"first", output.first},
                                {"activation", output.activation},
                                {"names", output.names}});
  }
  return facts_text(facts);
}

}  // namespace lockstep::formats
