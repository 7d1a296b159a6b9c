#include "cli/host_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace lockstep::cli {

namespace {

using Facts = std::vector<RankFacts>;
using Verdicts = std::vector<Verdict>;

// If some ranks have GPUs, too few on a host are a mistake in the cluster's values; otherwise a missing driver or
// module is reported once, in the words of the job that would need it.
void judge_gpus(const Facts& facts, Verdicts& wrong) {
  const bool any = std::any_of(facts.begin(), facts.end(), [](const RankFacts& rank) { return rank.gpus > 0; });
  std::set<std::string> reported;
  for (std::size_t r = 0; r < facts.size(); ++r) {
    const RankFacts& rank = facts[r];
    if (rank.problem.empty()) continue;
    if (any && (rank.gpus == 0 || rank.problem_code == ExitCode::usage)) {
      wrong.push_back(
          {ExitCode::usage, fmt::format("rank {} on {}: expected a GPU for each rank, found {} there; all ranks of a "
                                        "job need the same kind of device; see gpusPerNode and slots",
                                        r, rank.host, rank.gpus)});
    } else if (reported.insert(rank.problem).second) {
      wrong.push_back({rank.problem_code, rank.problem});
    }
  }
}

// Only GPUs are compared by name: processors with different names may compute the same bits.
void judge_kinds(const Facts& facts, Verdicts& wrong) {
  const RankFacts& first = facts.front();
  for (std::size_t r = 1; r < facts.size(); ++r) {
    const RankFacts& rank = facts[r];
    const bool other_gpu = rank.is_gpu && first.is_gpu && rank.device != first.device;
    if (!other_gpu && rank.fingerprint == first.fingerprint) continue;
    wrong.push_back(
        {ExitCode::usage, fmt::format("rank {} on {}: expected {}, as on rank 0, found {}; use one kind of node, or "
                                      "set exact: preferred in the job",
                                      r, rank.host, other_gpu ? first.device : first.fingerprint,
                                      other_gpu ? rank.device : rank.fingerprint)});
  }
}

void judge_clocks(const Facts& facts, double max_seconds, Verdicts& wrong) {
  std::set<std::string> reported;
  for (const RankFacts& rank : facts) {
    if (!reported.insert(rank.host).second || std::abs(rank.clock_ahead) - rank.clock_error <= max_seconds) continue;
    wrong.push_back(
        {ExitCode::infrastructure, fmt::format("{}: expected a clock within {:.4g} s of that of {}, found it {:.4g} s "
                                               "{}; synchronize the node's clock (chrony)",
                                               rank.host, max_seconds, facts.front().host, std::abs(rank.clock_ahead),
                                               rank.clock_ahead > 0 ? "ahead" : "behind")});
  }
}

}  // namespace

bool can_compute(const Facts& facts) {
  return std::all_of(facts.begin(), facts.end(), [](const RankFacts& rank) { return rank.problem.empty(); });
}

Verdicts judge_hosts(const Facts& facts, double bytes_per_second, const HostLimits& limits) {
  Verdicts wrong;
  judge_gpus(facts, wrong);
  const bool all_compute = can_compute(facts);
  if (all_compute && limits.one_kind) judge_kinds(facts, wrong);
  judge_clocks(facts, limits.clock_seconds, wrong);
  if (all_compute && bytes_per_second < limits.bytes_per_second) {
    wrong.push_back({ExitCode::infrastructure,
                     fmt::format("all-reduce: expected at least {:.3g} GB/s, found {:.3g} GB/s; see which network the "
                                 "ranks use (network.profile, network.interface) and what else uses it",
                                 limits.bytes_per_second / 1e9, bytes_per_second / 1e9)});
  }
  return wrong;
}

}  // namespace lockstep::cli
