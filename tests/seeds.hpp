// Property tests draw their cases from seeds. The seeds are fixed, so a test is the same every time; with
// LOCKSTEP_SEED=N in the environment it runs only the cases of seed N, to reproduce a failure or to try new ones.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

namespace lockstep {

/// 1 ... count, or the one that LOCKSTEP_SEED names.
inline std::vector<unsigned> seeds(unsigned count) {
  if (const char* given = std::getenv("LOCKSTEP_SEED")) return {static_cast<unsigned>(std::stoul(given))};
  std::vector<unsigned> all(count);
  for (unsigned i = 0; i < count; ++i) all[i] = i + 1;
  return all;
}

/// How to rerun the cases of this seed.
inline std::string rerun(unsigned seed, const std::string& program) {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  return fmt::format("LOCKSTEP_SEED={} build/release/bin/{} --gtest_filter={}.{}", seed, program,
                     test->test_suite_name(), test->name());
}

/// A number in [from, to]. By modulo, since the standard library's distributions differ between its versions.
inline int between(std::mt19937& random, int from, int to) {
  return from + static_cast<int>(random() % static_cast<unsigned>(to - from + 1));
}

template <class T>
const T& one_of(std::mt19937& random, const std::vector<T>& choices) {
  return choices[random() % choices.size()];
}

/// A host for each rank, with at most `most` hosts.
inline std::vector<int> random_hosts(std::mt19937& random, int ranks, int most) {
  const int hosts = between(random, 1, most);
  std::vector<int> host_of;
  for (int r = 0; r < ranks; ++r) host_of.push_back(between(random, 0, hosts - 1));
  return host_of;
}

/// Counts for each rank that add up to the micro-batches; some may be 0.
inline std::vector<int> random_counts(std::mt19937& random, int micro_batches, int ranks) {
  std::vector<int> counts(static_cast<std::size_t>(ranks), 0);
  for (int v = 0; v < micro_batches; ++v) ++counts[random() % counts.size()];
  return counts;
}

}  // namespace lockstep
