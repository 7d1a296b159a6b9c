// Which placement of a job's model is the fastest that fits, and what keeps it from being cut further.
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
  bool own = false;                               ///< as the job says
  [[nodiscard]] std::int64_t max_memory() const;  ///< of any rank, as its host is charged for it
};

/// What is searched. References outlive the search.
struct SearchSetup {
  const ModelSetup& model;
  const MemorySetup& memory;
  const TimeSetup& time;
  const RankSetup& ranks;
  std::vector<std::int64_t> limits;  ///< by rank: bytes that it may have
  bool may_divide = false;           ///< ranks may divide state here
};

/// The prediction of one placement. Throws as place_model().
[[nodiscard]] Candidate predict(const SearchSetup& setup, const Choice& choice);

struct SearchResult {
  std::vector<Candidate> candidates;  ///< those that fit first, each group by time; best first
  std::string why_not_more_parts;     ///< in plain words; empty: nothing to say
};

/// Numbers of parts from 1 to `parts`, with and without recomputed blocks, where the graph has some, and each way of
/// sharding of this version if ranks `may_divide`.
[[nodiscard]] std::vector<Choice> choices_of(const Graph& graph, int parts, bool may_divide);

/// The job's own choice, and beside it choices_of() as many parts as there are ranks.
[[nodiscard]] SearchResult search(const SearchSetup& setup);

/// In plain words: "2 parts, recompute: blocks".
[[nodiscard]] std::string text_of(const PlacedModel& placed);
/// What makes a job so, on a command line: "parallel.parts=2 recompute=blocks".
[[nodiscard]] std::string overrides_of(const Choice& choice);

}  // namespace lockstep::plan
