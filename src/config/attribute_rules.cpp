#include "config/attribute_rules.hpp"

#include <nlohmann/json.hpp>

#include "config/scalar_rules.hpp"
#include "lockstep/error.hpp"

namespace lockstep::config {
namespace {

Number limited(const AttributeSpec& spec) {
  Number limits = number();
  if (spec.minimum) limits = std::move(limits).at_least(*spec.minimum);
  if (spec.maximum) limits = std::move(limits).at_most(*spec.maximum);
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
    case AttributeKind::integers:
      return rule_for(spec, list_of<std::int64_t>(limited(spec), 1, /*single=*/true));
  }
  LOCKSTEP_CHECK(false, "an attribute's kind");
}

void set_fallbacks(const NamedAttributes& declared, Attributes& attributes) {
  for (const auto& spec : declared.attributes) {
    if (!spec.fallback) continue;
    const auto* integer = std::get_if<std::int64_t>(&*spec.fallback);
    const bool widen = spec.kind == AttributeKind::number && integer != nullptr;
    attributes.set(spec.name, widen ? Attribute(static_cast<double>(*integer)) : *spec.fallback);
  }
}

}  // namespace lockstep::config
