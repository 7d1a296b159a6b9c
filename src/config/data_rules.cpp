#include "config/data_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "config/list_rules.hpp"
#include "config/scalar_rules.hpp"

namespace lockstep::config {
namespace {

constexpr std::int64_t kMostFolds = 1000;

class ClassWeightsRule final : public Rule {
 public:
  void read(const Cursor& at, void* into) const override {
    auto& weights = *static_cast<ClassWeightOptions*>(into);
    weights = {};
    weights.place = at.place();
    if (at.node().is(YamlNode::Kind::mapping)) return by_name_.rule->read(at, &weights.by_name);
    if (at.node().is(YamlNode::Kind::sequence)) return by_number_.rule->read(at, &weights.by_number);
    if (!at.node().is(YamlNode::Kind::scalar) || at.node().text != kBalanced) return at.expected(expected());
    weights.balanced = true;
  }
  Json write(const void* value) const override {
    const auto& weights = *static_cast<const ClassWeightOptions*>(value);
    if (weights.balanced) return kBalanced;
    return weights.by_number.empty() ? by_name_.rule->write(&weights.by_name)
                                     : by_number_.rule->write(&weights.by_number);
  }
  Json schema() const override {
    return {{"oneOf", Json::array({Json{{"enum", {kBalanced}}}, by_name_.rule->schema(), by_number_.rule->schema()})}};
  }
  std::string expected() const override { return "balanced, a map of classes and weights, or a list of weights"; }

 private:
  static constexpr const char* kBalanced = "balanced";
  Is<std::map<std::string, double>> by_name_ = map_of<double>(number().at_least(0), "classes and weights");
  Is<std::vector<double>> by_number_ = list_of<double>(number().at_least(0));
};

class FoldRule final : public Rule {
 public:
  void read(const Cursor& at, void* into) const override {
    Fold fold;
    const std::string& text = at.node().text;
    if (!at.node().is(YamlNode::Kind::scalar) || !parse(text, fold)) return at.expected(expected());
    if (fold.of < 2 || fold.of > kMostFolds || fold.number < 1 || fold.number > fold.of) {
      return at.expected(fmt::format("a fold such as '2 of 5', from 1 of 2 to {} of {}", kMostFolds, kMostFolds));
    }
    *static_cast<Fold*>(into) = fold;
  }
  Json write(const void* value) const override {
    const auto& fold = *static_cast<const Fold*>(value);
    return fmt::format("{} of {}", fold.number, fold.of);
  }
  Json schema() const override { return {{"type", "string"}, {"pattern", "^[1-9][0-9]* of [1-9][0-9]*$"}}; }
  std::string expected() const override { return "a fold such as '2 of 5'"; }

 private:
  static bool parse(const std::string& text, Fold& fold) {
    const auto middle = text.find(" of ");
    return middle != std::string::npos && read_number(text.substr(0, middle), fold.number) &&
           read_number(text.substr(middle + 4), fold.of);
  }
  static bool read_number(const std::string& text, std::int64_t& number) {
    const bool digits = !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos;
    if (digits) number = std::stoll(text);
    return digits;
  }
};

}  // namespace

Is<ClassWeightOptions> class_weights_rule() {
  return {std::make_shared<ClassWeightsRule>()};
}

Is<Fold> fold_rule() {
  return {std::make_shared<FoldRule>()};
}

}  // namespace lockstep::config
