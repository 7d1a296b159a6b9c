// Lets ranks that start something together fail together: the first one that fails tells all others, even those that
// are still waiting for it, as NCCL does when a rank is missing.
//
// Verdicts go up a binary tree of ranks, each combining a rank's own with those of the ranks below it: success when all
// of these have succeeded, failure as soon as one has failed. Rank 0's result goes down again. So a rank sends at most
// three messages, and all ranks get the same verdict.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "lockstep/communicator.hpp"

namespace lockstep::comm {

struct Failure {
  int rank = 0;
  std::string what;  ///< other ranks receive at most kMaxFailureText characters of it
};
inline constexpr std::size_t kMaxFailureText = 1023;

/// This rank's verdict: empty for success, else what is wrong; nullopt while it is not known yet.
using Verdict = std::function<std::optional<std::string>()>;

/// Collective. Asks for this rank's verdict until there is one, and returns the result of all ranks: the failure of one
/// of them, or none. The verdict should come by the operation's deadline; a rank that has not heard from the others
/// `patience` later throws Error(infrastructure) with the rank that it waits for.
[[nodiscard]] std::optional<Failure> agree(Communicator& ranks, const Verdict& verdict, const Operation& operation,
                                           std::chrono::milliseconds patience);

}  // namespace lockstep::comm
