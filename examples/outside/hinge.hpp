// A loss and a metric of one's own, for classes: the multi-class hinge loss (Crammer and Singer, 2001), and the share
// of samples that it is 0 for.
#pragma once

#include <lockstep/op.hpp>

[[nodiscard]] lockstep::OpDef make_hinge();
[[nodiscard]] lockstep::OpDef make_clear_margin();
