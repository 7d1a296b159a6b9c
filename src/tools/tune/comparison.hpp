// Settings compared by short trainings, one after the other, so that they do not take the machine from each other.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/tune/probe.hpp"

namespace lockstep::tune {

struct Candidate {
  std::string name;                    ///< for people, and of its run directory: "threads=2"
  std::vector<std::string> overrides;  ///< key=value
};

struct Compared {
  Candidate candidate;
  Probe probe;
  double samples_per_second = 0;  ///< by the median step; 0: it failed
};

/// Called before a candidate is tried.
using Progress = std::function<void(const std::string& name)>;

[[nodiscard]] Compared try_candidate(const ProbeSetup& setup, const Candidate& candidate, std::int64_t steps);
[[nodiscard]] std::vector<Compared> compare(const ProbeSetup& setup, const std::vector<Candidate>& candidates,
                                            std::int64_t steps, const Progress& progress);

/// Index of the first that is as fast as the fastest, up to the noise of such measurements (3 %); -1: all failed.
[[nodiscard]] int first_of_fastest(const std::vector<double>& samples_per_second);

/// Threads a rank: 1, 2, 4, ... and `most`.
[[nodiscard]] std::vector<Candidate> thread_candidates(int most);
/// Background threads and micro-batches ahead: as they tune themselves, and fixed ones for `cores`.
[[nodiscard]] std::vector<Candidate> loader_candidates(int cores);

}  // namespace lockstep::tune
