// Samples that ranks have replaced (data.bad_samples: replace) are reported by rank 0, each once: an event
// `bad_sample`, which is kept in the run directory's events, too.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "data/replacing_set.hpp"
#include "lockstep/communicator.hpp"
#include "train/run_context.hpp"
#include "train/step_flags.hpp"

namespace lockstep::train {

/// What ranks have replaced since the last call, in order of set and id, each sample once; empty but on rank 0. Every
/// rank calls it.
[[nodiscard]] std::vector<data::ReplacedSample> gather_replaced(data::ReplacedSamples& replaced,
                                                                Communicator& communicator, const Operation& operation);

class BadSamples {
 public:
  BadSamples(const RunContext& run, std::shared_ptr<data::ReplacedSamples> replaced)
      : run_(run), replaced_(std::move(replaced)) {}

  /// What this rank asks for with the step's scalars.
  [[nodiscard]] std::uint32_t flags() const { return replaced_->any() ? kSamplesReplaced : 0; }
  /// Every rank calls it, at the same step.
  void report(std::int64_t step);

 private:
  const RunContext& run_;
  std::shared_ptr<data::ReplacedSamples> replaced_;
  std::set<std::pair<std::string, std::int64_t>> reported_;  ///< set and id; on rank 0
};

}  // namespace lockstep::train
