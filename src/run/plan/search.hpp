// Finds the fastest placement of a job's model that fits, and explains what keeps it from being cut further.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "run/plan/memory.hpp"
#include "run/plan/time.hpp"

namespace lockstep::plan {

/// A placement with its prediction.
struct Candidate {
  PlacedModel placed;
  std::vector<RankMemory> memory;  ///< by rank
  StepTime time;
  std::int64_t max_memory = 0;  ///< on any rank, as charged to its host
  bool fits = false;
  bool own = false;        ///< this is the job's own choice
  bool simulated = false;  ///< else its time is a lower bound, and by rank that of the phases that need no simulation
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

/// How many of the candidates a search returns.
inline constexpr std::size_t kMostCandidates = 10;

struct SearchResult {
  /// Best first: those that fit, by time, then the others, by memory. The job's own is among them, if need be in the
  /// place of the last one.
  std::vector<Candidate> candidates;
  std::size_t more = 0;            ///< candidates that were searched besides these
  std::string why_not_more_parts;  ///< as a sentence; empty: nothing to explain
};

/// Numbers of parts: all from 1 to 16 that are not above `most`, then four for each doubling, and `most`.
[[nodiscard]] std::vector<int> numbers_of_parts(int most);

/// Calls `use` with each distinct placement that has one of the numbers_of_parts() up to that of the ranks: with and
/// without recomputed blocks (if the graph has blocks), and with each kind of sharding if ranks `may_divide`; on GPUs
/// without `gradients`, which is `optimizer` there.
void for_each_placement(const ModelSetup& model, const RankSetup& ranks, bool may_divide,
                        const std::function<void(PlacedModel placed)>& use);

/// The job's own choice, plus for_each_placement().
[[nodiscard]] SearchResult search(const SearchSetup& setup);

/// As text: "2 parts, recompute: blocks".
[[nodiscard]] std::string text_of(const PlacedModel& placed);
/// The command-line overrides for this choice: "parallel.parts=2 recompute=blocks".
[[nodiscard]] std::string overrides_of(const Choice& choice);

}  // namespace lockstep::plan
