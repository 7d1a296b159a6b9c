#include <fmt/format.h>

#include "data/augment_steps/steps.hpp"
#include "lockstep/augment.hpp"
#include "lockstep/error.hpp"

namespace lockstep {

AugmentDef& AugmentRegistry::add(AugmentDef def) {
  const std::string name = def.name;
  auto [place, added] = defs_.try_emplace(name);
  if (!added) throw Error(ExitCode::usage, fmt::format("augmentation '{}' is already registered", name));
  place->second = std::make_unique<AugmentDef>(std::move(def));
  return *place->second;
}

const AugmentDef* AugmentRegistry::find(const std::string& name) const {
  const auto found = defs_.find(name);
  return found == defs_.end() ? nullptr : found->second.get();
}

std::vector<const AugmentDef*> AugmentRegistry::all() const {
  std::vector<const AugmentDef*> result;
  for (const auto& [name, def] : defs_) result.push_back(def.get());
  return result;
}

AugmentRegistry built_in_augmentations() {
  AugmentRegistry registry;
  data::add_built_in(registry);
  return registry;
}

}  // namespace lockstep
