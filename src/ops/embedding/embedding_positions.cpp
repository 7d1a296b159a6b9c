#include "ops/embedding/embedding_positions.hpp"

#include <fmt/format.h>

#include "lockstep/error.hpp"

namespace lockstep::ops {

void require_gpu_positions(std::int64_t positions) {
  if (positions <= kMostPositions) return;
  throw Error(ExitCode::configuration,
              fmt::format("embedding: on a GPU expected at most {} ids in a shard, found {}; take more shards",
                          kMostPositions, positions));
}

}  // namespace lockstep::ops
