// What `lockstep bench all-reduce` does on each rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/communicator.hpp"

namespace lockstep::cli {

struct AllReduceBenchOptions {
  std::vector<std::uint64_t> sizes;  ///< bytes of the whole gradient; none: 4 KiB to 64 MiB
  int rounds = 30, shards_a_rank = 1;
  std::string picture;  ///< of an SVG drawing; empty: none
  std::string log = "people";
  std::string device = "cpu";  ///< or cuda
};

/// Rank 0 prints. Throws Error(cannot_create) where the picture cannot be written, and as choose_device() where there
/// are no GPUs to be had.
int bench_all_reduce(Communicator& communicator, const AllReduceBenchOptions& options);

}  // namespace lockstep::cli
