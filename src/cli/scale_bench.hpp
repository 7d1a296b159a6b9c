// What `lockstep bench scale` does.
#pragma once

#include <string>

#include "tools/bench/scale.hpp"

namespace lockstep::cli {

struct ScaleBenchOptions : bench::ScaleOptions {
  std::string log = "people";
};

/// Prints rows for 16 ranks, four times as many, ... up to `ranks`. Throws as bench::measure_scale() does.
int bench_scale(const ScaleBenchOptions& options);

}  // namespace lockstep::cli
