#include "config/sweep_rules.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "config/overrides.hpp"

namespace lockstep::config {
namespace {

/// A number without a fraction is an integer, as everywhere in a job file.
Json number_json(double value) {
  constexpr double kLargest = 9007199254740991;
  if (value == std::floor(value) && std::abs(value) <= kLargest) return static_cast<std::int64_t>(value);
  return value;
}

Json json_of(const YamlNode& node) {
  Json json;
  switch (node.kind) {
    case YamlNode::Kind::nothing:
      return json;
    case YamlNode::Kind::sequence:
      json = Json::array();
      for (const auto& item : node.items) json.push_back(json_of(item));
      return json;
    case YamlNode::Kind::mapping:
      json = Json::object();
      for (const auto& entry : node.entries) json[entry.key] = json_of(entry.value);
      return json;
    case YamlNode::Kind::scalar:
      break;
  }
  if (scalar_type(node) == ScalarType::boolean) return node.text == "true";
  if (scalar_type(node) == ScalarType::number) return number_json(number_of(node));
  return node.text;
}

class AnyRule : public Rule {
 public:
  void read(const Cursor& at, void* into) const override {
    const bool number = at.node().is(YamlNode::Kind::scalar) && scalar_type(at.node()) == ScalarType::number;
    if (at.node().is(YamlNode::Kind::nothing) || (number && !std::isfinite(number_of(at.node())))) {
      return at.expected(expected());
    }
    *static_cast<std::string*>(into) = json_of(at.node()).dump();
  }
  Json write(const void* value) const override {
    return Json::parse(*static_cast<const std::string*>(value), nullptr, /*allow_exceptions=*/false);
  }
  Json schema() const override { return {{"not", {{"type", "null"}}}}; }
  std::string expected() const override { return "a value that the job file may have there"; }
};

class ConditionsRule : public Rule {
 public:
  void read(const Cursor& at, void* into) const override {
    auto& list = *static_cast<std::vector<SweepCondition>*>(into);
    if (!at.node().is(YamlNode::Kind::mapping) || at.node().entries.empty()) return at.expected(expected());
    for (const auto& entry : at.node().entries) {
      SweepCondition& condition = list.emplace_back(SweepCondition{override_key(entry.key), {}});
      const Cursor value = at.entry(entry);
      const bool several = entry.value.is(YamlNode::Kind::sequence);
      for (std::size_t i = 0; i < (several ? entry.value.items.size() : 1); ++i) {
        AnyRule().read(several ? value.item(i) : value, &condition.values.emplace_back());
      }
      if (condition.values.empty()) value.problem("expected at least one value, found an empty list");
    }
  }
  Json write(const void* value) const override {
    const auto& list = *static_cast<const std::vector<SweepCondition>*>(value);
    Json json;  // null: no condition
    for (const auto& condition : list) {
      Json values = Json::array();
      for (const auto& one : condition.values) values.push_back(AnyRule().write(&one));
      json[condition.parameter] = std::move(values);
    }
    return json;
  }
  Json schema() const override {
    return {{"type", "object"}, {"additionalProperties", AnyRule().schema()}, {"minProperties", 1}};
  }
  std::string expected() const override { return "a map of parameters and their values"; }
};

class ParametersRule : public Rule {
 public:
  explicit ParametersRule(RulePtr parameter) : parameter_(std::move(parameter)) {}

  void read(const Cursor& at, void* into) const override {
    auto& list = *static_cast<std::vector<SweepParameter>*>(into);
    if (!at.node().is(YamlNode::Kind::mapping)) return at.expected(expected());
    if (at.node().entries.empty()) return at.problem("expected at least one parameter, found none");
    for (const auto& entry : at.node().entries) {
      if (split_path(override_key(entry.key)).empty()) {
        at.session().problem(entry.mark, at.path(),
                             fmt::format("expected a path such as optimizer.sgd.momentum, found '{}'", entry.key));
        continue;
      }
      SweepParameter& parameter = list.emplace_back();
      parameter.path = override_key(entry.key);
      parameter_->read(at.entry(entry), &parameter);
    }
  }
  Json write(const void* value) const override {
    Json json;
    for (const auto& parameter : *static_cast<const std::vector<SweepParameter>*>(value)) {
      json[parameter.path] = parameter_->write(&parameter);
    }
    return json;
  }
  Json schema() const override {
    return {{"type", "object"}, {"additionalProperties", parameter_->schema()}, {"minProperties", 1}};
  }
  std::string expected() const override { return "a map of paths and what their values are drawn from"; }

 private:
  RulePtr parameter_;
};

}  // namespace

Is<std::string> any_value() {
  return {std::make_shared<AnyRule>()};
}

Is<std::vector<SweepCondition>> conditions() {
  return {std::make_shared<ConditionsRule>()};
}

Is<std::vector<SweepParameter>> parameters(Is<SweepParameter> parameter) {
  return {std::make_shared<ParametersRule>(std::move(parameter.rule))};
}

void at_parameter(const Scope& scope, const SweepParameter& parameter, const std::string& key, const std::string& inner,
                  std::string message) {
  const YamlNode* node = &scope.cursor().node();
  std::string path = scope.cursor().path();
  for (const std::string& step : {std::string("parameters"), parameter.path, key, inner}) {
    const Entry* entry = step.empty() ? nullptr : node->find(step);
    if (entry == nullptr) break;
    node = &entry->value;
    path += "." + step;
  }
  scope.cursor().session().problem(node->mark, path, std::move(message));
}

}  // namespace lockstep::config
