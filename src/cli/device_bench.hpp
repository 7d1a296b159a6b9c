// What `lockstep bench device` does.
#pragma once

#include <string>

#include "lockstep/communicator.hpp"

namespace lockstep::cli {

struct DeviceBenchOptions {
  std::string out;  ///< the profile's file; empty: stdout
};

/// Every rank measures the rates of its CPU with one thread, all at the same time, and the first two send each other
/// messages. The first one prints them, and writes the profile: the median over the ranks. Throws
/// Error(cannot_create) where the file cannot be written.
int bench_device(Communicator& communicator, const DeviceBenchOptions& options);

}  // namespace lockstep::cli
