// parallel: how the model is cut into parts. parts: 4 | [{until: block6, ranks: 2}, {ranks: 3}] | {branches: auto}
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/list_rules.hpp"
#include "config/scalar_rules.hpp"
#include "config/sections.hpp"

namespace lockstep::config {
namespace {

/// `branches: auto`: the only word allowed; stored as true.
class AutoRule : public Rule {
 public:
  void read(const Cursor& at, void* into) const override {
    if (!at.node().is(YamlNode::Kind::scalar) || at.node().text != "auto") return at.expected(expected());
    *static_cast<bool*>(into) = true;
  }
  Json write(const void* value) const override { return *static_cast<const bool*>(value) ? Json("auto") : Json(); }
  Json schema() const override { return {{"enum", Json::array({"auto"})}}; }
  std::string expected() const override { return "'auto'"; }
};

Is<PartOptions> part_section() {
  using Options = PartOptions;
  return Section<Options>()
      .field("until", &Options::until, text(), "last block or layer of the part; the last part has none")
      .field("ranks", &Options::ranks, number().at_least(1), "that compute it; in all parts or none")
      .written_if([](const Options& o) { return o.ranks > 0; })
      .placed(&Options::place)
      .called("a part such as {until: block6} or {until: block6, ranks: 2}");
}

/// A number of parts, a list of them, or branches: three members, exactly one of which is set.
class PartsRule : public Rule {
 public:
  void read(const Cursor& at, void* into) const override {
    auto& options = *static_cast<ParallelOptions*>(into);
    options.place = at.place();
    if (at.node().is(YamlNode::Kind::mapping)) return branches_->read(at, into);
    if (at.node().is(YamlNode::Kind::sequence)) {
      const std::size_t before = at.session().problems.size();
      list_->read(at, &options.cuts);
      if (at.session().problems.size() == before) check(options.cuts, at);
      return;
    }
    const bool is_number = at.node().is(YamlNode::Kind::scalar) && scalar_type(at.node()) == ScalarType::number;
    if (!is_number) return at.expected(expected());
    count_->read(at, &options.parts);
  }
  Json write(const void* value) const override {
    const auto& options = *static_cast<const ParallelOptions*>(value);
    if (options.branches) return branches_->write(value);
    return options.cuts.empty() ? count_->write(&options.parts) : list_->write(&options.cuts);
  }
  Json schema() const override {
    return {{"oneOf", Json::array({count_->schema(), list_->schema(), branches_->schema()})}};
  }
  std::string expected() const override { return "a number of parts, a list of them, or {branches: auto}"; }
  const Rule* child(const std::string& key) const override {
    return key.front() == '[' ? list_->child(key) : branches_->child(key);
  }
  std::vector<std::string> keys() const override { return branches_->keys(); }
  void make_room(YamlNode& node, const std::string& key) const override { branches_->make_room(node, key); }

 private:
  static void check(const std::vector<PartOptions>& cuts, const Cursor& at) {
    const bool counted = std::any_of(cuts.begin(), cuts.end(), [](const PartOptions& part) { return part.ranks > 0; });
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      const Cursor item = at.item(i);
      const bool last = i + 1 == cuts.size();
      if (last && !cuts[i].until.empty()) {
        Scope(item).problem("until", fmt::format("expected none at the last part, which ends with the model, found "
                                                 "'{}'; add a part for what follows, if only {{}}",
                                                 cuts[i].until));
      } else if (!last && cuts[i].until.empty()) {
        item.problem(
            "expected until, the block or layer that the part ends with, found none; only the last part "
            "has none");
      }
      if (counted && cuts[i].ranks == 0) {
        item.problem("expected ranks, as other parts have them, found none; give all parts theirs, or none");
      }
    }
  }

  RulePtr count_ = Is<std::int64_t>(number().at_least(1)).rule;
  RulePtr list_ = list_of(part_section()).rule;
  RulePtr branches_ =
      Is<ParallelOptions>(Section<ParallelOptions>()
                              .field("branches", &ParallelOptions::branches, {std::make_shared<AutoRule>()},
                                     "auto: those of the model that do not depend on each other")
                              .required())
          .rule;
};

}  // namespace

Is<ParallelOptions> parallel_section() {
  using Options = ParallelOptions;
  return Section<Options>()
      .part("parts", {std::make_shared<PartsRule>()},
            "of the model, each on its own ranks. A number: consecutive parts of equal cost for a rank. A list: each "
            "ends with a block or layer. {branches: auto}: independent branches side by side. With fewer ranks, "
            "neighbours merge. Layers may name their `part` instead")
      .field("in_flight", &Options::in_flight, number().at_least(1).word("auto", 0),
             "most micro-batches of a part between forward and backward on a worker: more wait less for other parts "
             "and take more memory")
      .field("sharding", &Options::sharding, choice<Sharding>(),
             "divided among the ranks of a model or part. optimizer: states and updates; on CPUs parameters are in "
             "memory once per host. gradients: these too. parameters: these too, between hosts, or on GPUs between "
             "ranks, and fetched while layers read them; no worker keeps packed copies");
}

}  // namespace lockstep::config
