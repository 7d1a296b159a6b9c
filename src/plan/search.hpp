// Finds the fastest placement of a job's model that fits, and explains what keeps it from being cut further.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "plan/memory.hpp"
#include "plan/time.hpp"

namespace lockstep::plan {

/// A placement with its prediction.
struct Candidate {
  PlacedModel placed;
  std::vector<RankMemory> memory;  ///< by rank
  StepTime time;
  bool fits = false;
  bool own = false;                               ///< this is the job's own choice
  [[nodiscard]] std::int64_t max_memory() const;  ///< on any rank, as charged to its host
};

/// What to search. References must outlive the search.
struct SearchSetup {
  const ModelSetup& model;
  const MemorySetup& memory;
  const TimeSetup& time;
  const RankSetup& ranks;
  std::vector<std::int64_t> limits;  ///< by rank: bytes that it may use
  bool may_divide = false;           ///< ranks can divide state on this device
};

/// The prediction for one placement. Throws as place_model().
[[nodiscard]] Candidate predict(const SearchSetup& setup, const Choice& choice);

struct SearchResult {
  std::vector<Candidate> candidates;  ///< best first: those that fit, then the others, each group by time
  std::string why_not_more_parts;     ///< as a sentence; empty: nothing to explain
};

/// Numbers of parts from 1 to `parts`, each with and without recomputed blocks (if the graph has blocks), and with each
/// kind of sharding if ranks `may_divide`; on GPUs without `gradients`, which is `optimizer` there, and of several
/// parts without `parameters`.
[[nodiscard]] std::vector<Choice> choices_of(const ModelSetup& model, int parts, bool may_divide);

/// The job's own choice, plus choices_of() for as many parts as ranks.
[[nodiscard]] SearchResult search(const SearchSetup& setup);

/// As text: "2 parts, recompute: blocks".
[[nodiscard]] std::string text_of(const PlacedModel& placed);
/// The command-line overrides for this choice: "parallel.parts=2 recompute=blocks".
[[nodiscard]] std::string overrides_of(const Choice& choice);

}  // namespace lockstep::plan
