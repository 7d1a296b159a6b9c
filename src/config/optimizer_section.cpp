// optimizer: adam | {sgd: {momentum: 0.9}}
#include "config/attribute_rules.hpp"
#include "config/sections.hpp"

namespace lockstep::config {

Is<OptimizerOptions> optimizer_section(const Catalogue& catalogue) {
  Section<OptimizerOptions> section;
  add_options(section, catalogue.optimizers, &OptimizerOptions::kind, &OptimizerOptions::attributes);
  return section;
}

}  // namespace lockstep::config
