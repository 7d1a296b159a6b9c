// Tells config which names of the registries a job file may use.
#pragma once

#include "config/config.hpp"
#include "lockstep/trainer.hpp"

namespace lockstep::train {

[[nodiscard]] config::Catalogue catalogue_of(const Registries& registries);

}  // namespace lockstep::train
