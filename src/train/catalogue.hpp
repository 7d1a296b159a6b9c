// From the registries to what config may find named in a job file.
#pragma once

#include "config/config.hpp"
#include "lockstep/trainer.hpp"

namespace lockstep::train {

[[nodiscard]] config::Catalogue catalogue_of(const Registries& registries);

}  // namespace lockstep::train
