// Reports replaced samples (data.bad_samples: replace): rank 0 emits one event `bad_sample` for each, which is also
// kept in the run directory's events.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "data/replacing_set.hpp"
#include "lockstep/communicator.hpp"
#include "run/train/run_context.hpp"
#include "run/train/step_flags.hpp"

namespace lockstep::train {

/// Samples that any rank has replaced since the last call, in order of set and id, each once; empty except on rank 0.
/// Collective.
[[nodiscard]] std::vector<data::ReplacedSample> gather_replaced(data::ReplacedSamples& replaced,
                                                                Communicator& communicator, const Operation& operation);

class BadSamples {
 public:
  BadSamples(const RunContext& run, std::shared_ptr<data::ReplacedSamples> replaced)
      : run_(run), replaced_(std::move(replaced)) {}

  /// The flags that this rank sends with the step's scalars.
  std::uint32_t flags() const { return replaced_->any() ? kSamplesReplaced : 0; }
  /// Collective: called at the same step on every rank.
  void report(std::int64_t step);

 private:
  const RunContext& run_;
  std::shared_ptr<data::ReplacedSamples> replaced_;
  std::set<std::pair<std::string, std::int64_t>> reported_;  ///< set and id; on rank 0 only
};

}  // namespace lockstep::train
