// What `lockstep bench device` does.
#pragma once

#include <string>

#include "lockstep/communicator.hpp"

namespace lockstep::cli {

struct DeviceBenchOptions {
  std::string out;  ///< path of the profile; empty: stdout
};

/// All ranks measure the rates of their CPUs at the same time, with one thread each, and the first two send each other
/// messages. The first one prints the rates and writes the profile: the median over the ranks. Throws
/// Error(cannot_create) if the file cannot be written.
int bench_device(Communicator& communicator, const DeviceBenchOptions& options);

}  // namespace lockstep::cli
