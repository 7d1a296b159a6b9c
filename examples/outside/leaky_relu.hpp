// An op of one's own: leaky_relu, y = x where x > 0, else slope * x.
#pragma once

#include <lockstep/op.hpp>

[[nodiscard]] lockstep::OpDef make_leaky_relu();
