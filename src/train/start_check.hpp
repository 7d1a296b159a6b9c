// What must be equal on all ranks before the first step: job, data, program and fingerprint.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "lockstep/communicator.hpp"

namespace lockstep::train {

struct StartFact {
  std::string name;         ///< "job", "data set", "program", "fingerprint"
  std::string value;        ///< a digest, or a short text
  std::string remedy;       ///< what to try when it differs
  bool bits_only = false;   ///< a difference is allowed when the job does not require exact bits
  std::string detail = {};  ///< told beside a value that differs, but not compared
};

/// Every rank calls it with the same names. Throws Error(usage) that names the rank and host that differ from the
/// most common value. With `exact_required` false, differing `bits_only` facts are returned as warnings instead.
std::vector<std::string> compare_start(const std::vector<StartFact>& facts, bool exact_required,
                                       Communicator& communicator, std::chrono::milliseconds timeout);

}  // namespace lockstep::train
