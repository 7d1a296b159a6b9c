// loss: cross_entropy | {cross_entropy: {label_smoothing: 0.1}, target: label}
#include "config/attribute_rules.hpp"
#include "config/scalar_rules.hpp"
#include "config/sections.hpp"

namespace lockstep::config {

Is<LossOptions> loss_section(const Catalogue& catalogue) {
  Section<LossOptions> section;
  add_options(section, catalogue.losses, &LossOptions::kind, &LossOptions::attributes);
  section.alternatives_optional();  // cross_entropy
  section.field("target", &LossOptions::target, text(), "the feature of a sample that the prediction is held against");
  return section;
}

}  // namespace lockstep::config
