#include "tools/tune/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lockstep::tune {

namespace {

constexpr double kNoise = 0.03;  // of two measurements of the same

std::vector<int> doublings(int most) {
  std::vector<int> numbers;
  for (int n = 1; n < most; n *= 2) numbers.push_back(n);
  numbers.push_back(std::max(most, 1));
  return numbers;
}

}  // namespace

Compared try_candidate(const ProbeSetup& setup, const Candidate& candidate, std::int64_t steps) {
  Compared compared{candidate, run_probe(setup, candidate.name, steps, candidate.overrides), 0};
  const double seconds = compared.probe.step_seconds();
  if (!compared.probe.failed() && compared.probe.start && seconds > 0) {
    compared.samples_per_second = compared.probe.start->batch_size / seconds;
  }
  return compared;
}

std::vector<Compared> compare(const ProbeSetup& setup, const std::vector<Candidate>& candidates, std::int64_t steps,
                              const Progress& progress) {
  std::vector<Compared> all;
  for (const Candidate& candidate : candidates) {
    progress(candidate.name);
    all.push_back(try_candidate(setup, candidate, steps));
  }
  return all;
}

int first_of_fastest(const std::vector<double>& samples_per_second) {
  if (samples_per_second.empty()) return -1;
  const double fastest = *std::max_element(samples_per_second.begin(), samples_per_second.end());
  if (fastest <= 0) return -1;
  const auto first = std::find_if(samples_per_second.begin(), samples_per_second.end(),
                                  [&](double rate) { return rate >= (1 - kNoise) * fastest; });
  return first - samples_per_second.begin();
}

std::vector<Candidate> thread_candidates(int most) {
  std::vector<Candidate> candidates;
  for (const int threads : doublings(most)) {
    const std::string word = fmt::format("threads={}", threads);
    candidates.push_back({word, {word}});
  }
  return candidates;
}

std::vector<Candidate> loader_candidates(int cores) {
  std::vector<Candidate> candidates = {{"auto", {"data.threads=auto", "data.depth=auto"}}};
  for (const int threads : doublings(cores)) {
    for (const int depth : {2 * threads, 8 * threads}) {
      candidates.push_back({fmt::format("threads={} depth={}", threads, depth),
                            {fmt::format("data.threads={}", threads), fmt::format("data.depth={}", depth)}});
    }
  }
  return candidates;
}

}  // namespace lockstep::tune
