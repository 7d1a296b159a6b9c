// A schedule of one's own: the rate falls to 0 along a power of what is left of the run.
#pragma once

#include <lockstep/schedule.hpp>

[[nodiscard]] lockstep::ScheduleDef make_polynomial();
