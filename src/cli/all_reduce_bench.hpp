// What `lockstep bench all-reduce` does on each rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/communicator.hpp"

namespace lockstep::cli {

struct AllReduceBenchOptions {
  std::vector<std::uint64_t> sizes;  ///< bytes of the whole gradient; empty: 4 KiB to 64 MiB
  int rounds = 30, micro_batches_a_rank = 1;
  std::string picture;  ///< path of an SVG picture; empty: none
  std::string log = "people";
  std::string device = "cpu";  ///< or cuda
};

/// Rank 0 prints. Throws Error(cannot_create) if the picture cannot be written, and what choose_backend() throws if no
/// GPU is available.
int bench_all_reduce(Communicator& communicator, const AllReduceBenchOptions& options);

}  // namespace lockstep::cli
