// What `lockstep bench scale` does.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::cli {

struct ScaleBenchOptions {
  int ranks = 16'384;  ///< the most
  int ranks_a_host = 8;
  int shards_a_rank = 4;
  std::uint64_t gradient_bytes = 100U << 20U;
  std::string log = "people";
};

/// Rows for 16 ranks, four times as many, ... up to `ranks`. Throws as measure_supervisor_turn() does.
int bench_scale(const ScaleBenchOptions& options);

}  // namespace lockstep::cli
