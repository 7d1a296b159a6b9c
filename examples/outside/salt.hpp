// An augmentation step of one's own: some pixels turn white.
#pragma once

#include <lockstep/augment.hpp>

lockstep::AugmentDef make_salt();
