// The generator is public, because augmentation steps of other programs draw from it.
#pragma once

#include "lockstep/random.hpp"  // IWYU pragma: export
