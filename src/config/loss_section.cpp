// loss: cross_entropy | {cross_entropy: {...}, target: label} | a list of several, which are added. metrics: of several
// losses each is NAME/METRIC.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "config/advice.hpp"
#include "config/attribute_rules.hpp"
#include "config/list_rules.hpp"
#include "config/scalar_rules.hpp"
#include "config/sections.hpp"
#include "core/nearest.hpp"
#include "core/top_k.hpp"

namespace lockstep::config {
namespace {

Is<LossOptions> loss_section(const Catalogue& catalogue) {
  Section<LossOptions> section;
  section.initially([losses = catalogue.losses](LossOptions& loss) {
    for (const auto& declared : losses) {
      if (declared.name == loss.kind) set_defaults(declared, loss.attributes);
    }
  });
  add_options(section, catalogue.losses, &LossOptions::kind, &LossOptions::attributes);
  section.alternatives_optional();  // cross_entropy is the default
  return section.field("target", &LossOptions::target, text(), "the feature that the prediction is compared with")
      .field("output", &LossOptions::output, text(),
             "of several losses: the layer that predicts; default: the last one")
      .field("weight", &LossOptions::weight, number().above(0), "of several losses: its factor in their sum")
      .written_if([](const LossOptions& loss) { return !loss.name.empty(); })
      .field("name", &LossOptions::name, text(),
             "of several losses: prefix of its metrics; default: the target's name");
}

/// Sets `loss`, or if it is a list `losses`.
class LossesRule final : public Rule {
 public:
  explicit LossesRule(const Catalogue& catalogue)
      : one_(loss_section(catalogue).rule),
        several_(list_of<LossOptions>(loss_section(catalogue), {.least = 2}).rule) {}

  void read(const Cursor& at, void* into) const override {
    Job& job = *static_cast<Job*>(into);
    if (!at.node().is(YamlNode::Kind::sequence)) {
      one_->read(at, &job.loss);
      for (const auto* key : {"output", "weight", "name"}) {
        if (at.node().is(YamlNode::Kind::mapping) && at.node().find(key) != nullptr) {
          at.entry(*at.node().find(key))
              .problem(fmt::format("expected it in a list of several losses only, found it at the only one; leave it "
                                   "out, or write [{{...}}, {{...}}]"));
        }
      }
      return;
    }
    if (at.node().items.size() == 1)
      return at.problem("expected several losses in a list, found one; leave out the [ ]");
    several_->read(at, &job.losses);
    for (std::size_t i = 0; i < job.losses.size(); ++i) {
      LossOptions& loss = job.losses[i];
      if (loss.name.empty()) loss.name = loss.target;
      const auto same = [&](const LossOptions& other) { return other.name == loss.name; };
      const auto end = job.losses.begin() + i;
      if (std::find_if(job.losses.begin(), end, same) == end) continue;
      at.item(i).problem(
          fmt::format("expected losses of different names, found '{}' a second time; add `name`", loss.name));
    }
  }
  Json write(const void* value) const override {
    const Job& job = *static_cast<const Job*>(value);
    return job.losses.empty() ? one_->write(&job.loss) : several_->write(&job.losses);
  }
  Json schema() const override {
    Json schema = one_->schema(), several = several_->schema();
    several["minItems"] = 2;
    const char* const forms = schema.contains("anyOf") ? "anyOf" : "oneOf";
    schema[forms].push_back(std::move(several));
    return schema;
  }
  std::string expected() const override { return one_->expected() + ", or a list of such"; }
  const Rule* child(const std::string& key) const override {
    return key.front() == '[' ? several_->child(key) : one_->child(key);
  }
  std::vector<std::string> keys() const override { return one_->keys(); }
  void make_room(YamlNode& node, const std::string& key) const override { one_->make_room(node, key); }

 private:
  RulePtr one_, several_;
};

/// What is wrong with the K of "top1" or "top03"; empty where `metric` is no topK.
std::string advice_for_top_k(std::string_view metric) {
  const bool is_top_k = metric.starts_with("top") && metric.size() > 3 &&
                        metric.find_first_not_of("0123456789", 3) == std::string_view::npos;
  if (!is_top_k) return "";
  return metric == "top1" ? "; top1 is 'accuracy'" : "; K is a number from 2 to 999999, without zeros before it";
}

/// A metric, or NAME/METRIC. Where top5 is one, so is topK for any K.
class MetricRule final : public Rule {
 public:
  explicit MetricRule(std::vector<std::string> metrics) : metrics_(std::move(metrics)) {}

  void read(const Cursor& at, void* into) const override {
    const auto found = read_text(at, expected());
    if (!found) return;
    const auto slash = found->rfind('/');
    const std::string metric = slash == std::string::npos ? *found : found->substr(slash + 1);
    const bool is_known = is_listed(metric) || (top_k_of(metric) > 0 && is_listed(kTop5));
    if (slash == 0 || !is_known) {
      const std::string advice = is_listed(kTop5) ? advice_for_top_k(metric) : "";
      return at.expected(expected(), advice.empty() ? did_you_mean(metric, metrics_) : advice);
    }
    *static_cast<std::string*>(into) = *found;
  }
  Json write(const void* value) const override {
    const auto& text = *static_cast<const std::string*>(value);
    return text.empty() ? Json() : Json(text);
  }
  Json schema() const override {
    constexpr const char* kTopK = "top([2-9]|[1-9][0-9]{1,5})";
    const auto text = [](const std::string& pattern) { return Json{{"type", "string"}, {"pattern", pattern}}; };
    const bool has_top_k = is_listed(kTop5);
    Json forms = {{{"type", "string"}, {"enum", metrics_}}};
    if (has_top_k) forms.push_back(text(fmt::format("^{}$", kTopK)));
    forms.push_back(
        text(fmt::format("^.+/({}{})$", fmt::join(metrics_, "|"), has_top_k ? fmt::format("|{}", kTopK) : "")));
    return {{"anyOf", forms}};
  }
  std::string expected() const override {
    std::vector<std::string> words = metrics_;
    std::replace(words.begin(), words.end(), std::string(kTop5), std::string("topK (such as top5)"));
    return one_of(words);
  }

 private:
  static constexpr const char* kTop5 = "top5";

  bool is_listed(const std::string& metric) const {
    return std::find(metrics_.begin(), metrics_.end(), metric) != metrics_.end();
  }

  std::vector<std::string> metrics_;
};

}  // namespace

Is<Job> losses_rule(const Catalogue& catalogue) {
  return {std::make_shared<LossesRule>(catalogue)};
}

Is<std::string> metric(std::vector<std::string> metrics) {
  return {std::make_shared<MetricRule>(std::move(metrics))};
}

Is<std::string> metric_or_loss(const Catalogue& catalogue) {
  std::vector<std::string> names = catalogue.metrics;
  names.emplace_back("loss");
  return metric(std::move(names));
}

void check_losses(const Job& job, const Scope& scope) {
  std::vector<std::string> names;
  for (const LossOptions& loss : job.losses) names.push_back(loss.name);
  for (const std::string& metric : job.metrics) {
    const auto slash = metric.rfind('/');
    const std::string name = slash == std::string::npos ? "" : metric.substr(0, slash);
    if (names.empty() && !name.empty()) {
      scope.problem("metrics", fmt::format("expected {} without a name, since there is one loss, found '{}'",
                                           metric.substr(slash + 1), metric));
    } else if (!names.empty() && std::find(names.begin(), names.end(), name) == names.end()) {
      scope.problem("metrics",
                    fmt::format("expected NAME/METRIC with the name of a loss ({}), since there are several, "
                                "found '{}'",
                                fmt::join(names, ", "), metric));
    }
  }
  if (names.empty()) return;
  const DataOptions& data = job.data;
  const char* const of_one = data.mix ? "mix" : data.soft_labels ? "soft_labels" : nullptr;
  if (of_one == nullptr) return;
  scope.problem(fmt::format("data.{}", of_one),
                "expected one loss, whose target are the samples' classes, found a list of several; leave it out");
}

}  // namespace lockstep::config
