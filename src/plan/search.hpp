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
  bool own = false;                                ///< as the job says
  [[nodiscard]] std::int64_t most_memory() const;  ///< of any rank
};

/// What is searched. References outlive the search.
struct SearchSetup {
  const ModelSetup& model;
  const MemorySetup& memory;
  const TimeSetup& time;
  const RankSetup& ranks;
  std::vector<std::int64_t> limits;            ///< by rank: bytes that it may have
  std::function<bool(const Choice&)> accepts;  ///< whether a job may say so; empty: all
  bool may_cut = true;                         ///< parts are computed here
};

/// The prediction of one placement. Throws as place_model().
[[nodiscard]] Candidate predict(const SearchSetup& setup, const Choice& choice);

struct SearchResult {
  std::vector<Candidate> candidates;  ///< those that fit first, each group by time; best first
  std::string why_not_more_parts;     ///< in plain words; empty: nothing to say
};

/// The job's own choice, and beside it numbers of parts from 1 to the ranks, with and without recomputed blocks, and
/// each way of sharding that is accepted.
[[nodiscard]] SearchResult search(const SearchSetup& setup);

/// In plain words: "2 parts, recompute: blocks".
[[nodiscard]] std::string text_of(const PlacedModel& placed);
/// What makes a job so, on a command line: "parallel.parts=2 recompute=blocks".
[[nodiscard]] std::string overrides_of(const Choice& choice);

}  // namespace lockstep::plan
