#include "config/attribute_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "config/scalar_rules.hpp"
#include "core/nearest.hpp"

namespace lockstep::config {
namespace {

Number limited(const AttributeSpec& spec) {
  Number limits = number();
  if (spec.minimum) {
    limits = spec.above_minimum ? std::move(limits).above(*spec.minimum) : std::move(limits).at_least(*spec.minimum);
  }
  if (spec.maximum) {
    limits = spec.below_maximum ? std::move(limits).below(*spec.maximum) : std::move(limits).at_most(*spec.maximum);
  }
  return limits;
}

template <class V>
class AttributeRule : public Rule {
 public:
  AttributeRule(std::string name, Is<V> inner) : name_(std::move(name)), inner_(std::move(inner.rule)) {}

  void read(const Cursor& at, void* into) const override {
    V value{};
    const std::size_t before = at.session().problems.size();
    inner_->read(at, &value);
    if (at.session().problems.size() == before) static_cast<Attributes*>(into)->set(name_, std::move(value));
  }
  Json write(const void* value) const override {
    const auto& attributes = *static_cast<const Attributes*>(value);
    if (!attributes.has(name_)) return {};
    const V held = get(attributes);
    return inner_->write(&held);
  }
  Json schema() const override { return inner_->schema(); }
  std::string expected() const override { return inner_->expected(); }

 private:
  V get(const Attributes& attributes) const {
    if constexpr (std::is_same_v<V, double>) return attributes.number(name_);
    if constexpr (std::is_same_v<V, std::vector<std::int64_t>>) return attributes.integers(name_);
    return std::get<V>(attributes.all().at(name_));
  }
  std::string name_;
  RulePtr inner_;
};

/// One or several integers, or a word instead (`padding: same`).
class WordOrIntegersRule : public Rule {
 public:
  WordOrIntegersRule(std::string name, std::vector<std::string> words, RulePtr integers)
      : name_(std::move(name)), words_(std::move(words)), integers_(std::move(integers)) {}

  void read(const Cursor& at, void* into) const override {
    const bool text = at.node().is(YamlNode::Kind::scalar) && scalar_type(at.node()) == ScalarType::text;
    if (!text) return integers_->read(at, into);
    if (std::find(words_.begin(), words_.end(), at.node().text) == words_.end()) {
      return at.expected(expected(), did_you_mean(at.node().text, words_));
    }
    static_cast<Attributes*>(into)->set(name_, at.node().text);
  }
  Json write(const void* value) const override {
    const auto& attributes = *static_cast<const Attributes*>(value);
    if (attributes.has(name_) && attributes.is_text(name_)) return attributes.text(name_);
    return integers_->write(value);
  }
  Json schema() const override {
    Json forms = integers_->schema()["oneOf"];
    forms.insert(forms.begin(), Json{{"enum", words_}});
    return {{"oneOf", forms}};
  }
  std::string expected() const override {
    return fmt::format("'{}' or {}", fmt::join(words_, "', '"), integers_->expected());
  }

 private:
  std::string name_;
  std::vector<std::string> words_;
  RulePtr integers_;
};

template <class V>
Is<Attributes> rule_for(const AttributeSpec& spec, Is<V> inner) {
  return {std::make_shared<AttributeRule<V>>(spec.name, std::move(inner))};
}

}  // namespace

Is<Attributes> attribute(const AttributeSpec& spec) {
  switch (spec.kind) {
    case AttributeKind::boolean:
      return rule_for(spec, boolean());
    case AttributeKind::integer:
      return rule_for<std::int64_t>(spec, limited(spec));
    case AttributeKind::number:
      return rule_for<double>(spec, limited(spec));
    case AttributeKind::text:
      return rule_for<std::string>(spec, text().one_of(spec.choices));
    case AttributeKind::spans:
      return rule_for<std::vector<Span>>(spec, list_of(span(false)));
    case AttributeKind::span:
      return rule_for<Span>(spec, span(false));
    case AttributeKind::integers:
      break;
  }
  auto integers = rule_for(spec, list_of<std::int64_t>(limited(spec), {.single = true}));
  if (spec.choices.empty()) return integers;
  return {std::make_shared<WordOrIntegersRule>(spec.name, spec.choices, std::move(integers.rule))};
}

void set_defaults(const NamedAttributes& declared, Attributes& attributes) {
  for (const auto& spec : declared.attributes) {
    if (!spec.default_value) continue;
    const auto* integer = std::get_if<std::int64_t>(&*spec.default_value);
    const bool as_number = spec.kind == AttributeKind::number && integer != nullptr;
    attributes.set(spec.name, as_number ? Attribute(static_cast<double>(*integer)) : *spec.default_value);
  }
}

}  // namespace lockstep::config
