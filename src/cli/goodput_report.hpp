// What `lockstep bench goodput` prints.
#pragma once

#include <vector>

#include "tools/bench/goodput_sweep.hpp"

namespace lockstep::cli {

struct GoodputReport {
  bench::GoodputSetup setup;  ///< with the requested interval
  int seeds = 1;
  double young_daly_seconds = 0;                 ///< infinity: nothing fails
  std::vector<bench::GoodputSummary> summaries;  ///< by interval, the shortest first; setup's interval is one of them
};

void print_goodput(const GoodputReport& report);
/// Prints one line for each interval.
void print_goodput_json(const GoodputReport& report);

}  // namespace lockstep::cli
