// An optimizer of one's own: Lion (Chen and others, "Symbolic Discovery of Optimization Algorithms", 2023).
#pragma once

#include <lockstep/optimizer.hpp>

[[nodiscard]] lockstep::OptimizerDef make_lion();
