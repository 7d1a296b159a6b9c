// How ranks that start something together end together: the first that fails tells all the others, also those that
// still wait for it, as NCCL does while a rank is missing.
//
// Verdicts go up a binary tree of ranks, each rank's with those below it: that all is well when all of these have said
// so, that one has failed as soon as one has. What rank 0 comes to goes down again. So a rank sends three messages at
// most, and all of them come to one verdict.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "lockstep/communicator.hpp"

namespace lockstep::comm {

struct Failure {
  int rank = 0;
  std::string what;  ///< at most kMaxFailureText characters of it come to the other ranks
};
inline constexpr std::size_t kMaxFailureText = 1023;

/// What this rank has to say: empty where all is well, else what is wrong; nothing while it does not know.
using Verdict = std::function<std::optional<std::string>()>;

/// Every rank calls it. Asks for this rank's verdict until there is one, and returns what all ranks have come to: the
/// failure of one of them, or none. The verdict should come by the operation's deadline; who has not heard of the
/// others `patience` later throws Error(infrastructure) with the rank that it waits for.
[[nodiscard]] std::optional<Failure> agree(Communicator& ranks, const Verdict& verdict, const Operation& operation,
                                           std::chrono::milliseconds patience);

}  // namespace lockstep::comm
