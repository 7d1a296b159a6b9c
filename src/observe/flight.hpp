// The flight recorder of a rank that a wait has failed on, written where `docs/faults.md` says.
#pragma once

#include <string>

#include "lockstep/communicator.hpp"

namespace lockstep::observe {

/// What the rank was in. Writes nothing where there is one rank alone, and no recorder.
void write_flight(const std::string& run_directory, Communicator& communicator);

}  // namespace lockstep::observe
