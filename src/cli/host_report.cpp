#include "cli/host_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "comm/transport/clock_offset.hpp"
#include "core/median.hpp"
#include "core/words.hpp"
#include "device/device.hpp"
#include "device/gpu/driver.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/text.hpp"
#include "run/train/device_choice.hpp"
#include "run/train/fingerprint.hpp"
#include "tools/bench/reduce_times.hpp"

namespace lockstep::cli {

namespace {

constexpr std::size_t kFactsBytes = 4096;  ///< size of a rank's facts as text
constexpr std::size_t kLongestText = 600;  ///< in bytes, of a problem; a non-ASCII letter may take six bytes in JSON
constexpr std::int64_t kElements = std::int64_t{4} << 20;  ///< of the gradient: 16 MiB of floats
constexpr int kRounds = 10;

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// Null if there is none; `facts` then says why. Collective.
std::unique_ptr<train::Backend> backend_of(Communicator& communicator, const std::string& wanted, RankFacts& facts) {
  Job job;
  job.device = value_of<DeviceChoice>(wanted);
  if (wanted == "cuda") facts.gpus = device::ask_driver().gpus.size();
  try {
    return train::choose_backend(job, communicator);
  } catch (const Error& error) {
    facts.problem = std::string(error.what()).substr(0, kLongestText);
    facts.problem_code = error.code();
    return {};
  }
}

RankFacts facts_of(Communicator& communicator, const std::string& wanted, std::unique_ptr<train::Backend>& backend) {
  RankFacts facts;
  facts.host = communicator.topology().host_name(communicator.rank());
  if (const char* node = std::getenv("LOCKSTEP_NODE"); node != nullptr) facts.host += fmt::format(" on {}", node);
  backend = backend_of(communicator, wanted, facts);
  if (backend) {
    facts.is_gpu = backend->device().kind() == DeviceKind::cuda;
    facts.device = backend->device().name();
    facts.fingerprint = train::take_fingerprint(backend->device()).text();
  }
  const auto clock = comm::clock_offset(communicator, bench::kTimeout, wall_seconds);
  facts.clock_ahead = -clock.seconds;
  facts.clock_error = clock.error;
  return facts;
}

std::string to_text(const RankFacts& facts) {
  std::string text =
      nlohmann::json{facts.host,         facts.device,      facts.is_gpu,      facts.gpus,       facts.problem,
                     facts.problem_code, facts.fingerprint, facts.clock_ahead, facts.clock_error}
          .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  LOCKSTEP_CHECK(text.size() <= kFactsBytes, text);
  text.resize(kFactsBytes, ' ');
  return text;
}

RankFacts from_text(const std::string& text) {
  const auto json = nlohmann::json::parse(text);
  return {json[0], json[1], json[2], json[3], json[4], json[5], json[6], json[7], json[8]};
}

std::vector<RankFacts> gather(Communicator& communicator, const RankFacts& of_this_rank) {
  const std::string mine = to_text(of_this_rank);
  std::string all(kFactsBytes * communicator.size(), ' ');
  communicator.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)),
                          {"host facts", 0, bench::kTimeout});
  std::vector<RankFacts> facts;
  for (std::size_t at = 0; at < all.size(); at += kFactsBytes) facts.push_back(from_text(all.substr(at, kFactsBytes)));
  return facts;
}

void print_ranks(const Topology& topology, const std::vector<RankFacts>& facts) {
  std::size_t width = 4;
  for (const RankFacts& rank : facts) width = std::max(width, rank.host.size());
  fmt::print("{} rank{} on {} host{}\n\nrank  {:<{}}  computes on\n", facts.size(), facts.size() == 1 ? "" : "s",
             topology.host_names.size(), topology.host_names.size() == 1 ? "" : "s", "host", width);
  std::map<std::string, int> kinds;
  for (std::size_t r = 0; r < facts.size(); ++r) {
    const std::string device = facts[r].problem.empty() ? facts[r].device : "no usable GPU";
    fmt::print("{:>4}  {:<{}}  {}\n", r, facts[r].host, width, device);
    ++kinds[device];
  }
  std::vector<std::string> mix;
  for (const auto& [kind, count] : kinds) mix.push_back(fmt::format("{} x {}", count, kind));
  fmt::print("\nkinds       {}\n", fmt::join(mix, "; "));
  if (can_compute(facts)) fmt::print("bits        {}\n", facts.front().fingerprint);
}

void print_clocks(const std::vector<RankFacts>& facts) {
  double apart = 0, error = 0;
  for (const RankFacts& rank : facts) {
    apart = std::max(apart, std::abs(rank.clock_ahead));
    error = std::max(error, rank.clock_error);
  }
  fmt::print("clocks      at most {:.3f} ms from rank 0's, measured to {:.3f} ms\n", 1e3 * apart, 1e3 * error);
}

/// Bus bandwidth of the exact all-reduce, in bytes per second.
double time_reduces(Communicator& communicator, const exec::Device& device) {
  const double bytes = static_cast<double>(kElements) * sizeof(float);
  const comm::ReduceDevice place = device.reduce_device(communicator, bench::kTimeout);
  const double exact = median(bench::time_reduce(communicator, {.elements = kElements}, true, kRounds, place).seconds);
  const double library = median(bench::time_all_reduce(communicator, kElements, kRounds, place).seconds);
  const double bandwidth = bench::bus_bandwidth(bytes, communicator.size(), exact);
  if (communicator.rank() == 0) {
    fmt::print("all-reduce  all sums right; 16 MiB in {:.2f} ms, {}/s per rank; {}'s all-reduce takes {:.2f} ms\n",
               1e3 * exact, byte_count(bandwidth), device.all_reduce_library(), 1e3 * library);
  }
  return bandwidth;
}

}  // namespace

int report_hosts(Communicator& communicator, const HostLimits& limits, const std::string& wanted) {
  const bool leads = communicator.rank() == 0;
  std::unique_ptr<train::Backend> backend;
  const std::vector<RankFacts> facts = gather(communicator, facts_of(communicator, wanted, backend));
  if (leads) print_ranks(communicator.topology(), facts);
  double bandwidth = 0;
  if (backend && can_compute(facts)) {
    bandwidth = time_reduces(communicator, backend->device());
  } else if (leads) {
    fmt::print("all-reduce  not timed: not every rank has a GPU\n");
  }
  if (!leads) return 0;
  print_clocks(facts);
  const auto wrong = judge_hosts(facts, bandwidth, limits);
  if (wrong.empty()) {
    fmt::print("\nno problems found\n");
    return 0;
  }
  (void)std::fflush(stdout);
  std::vector<std::string> texts;
  for (const Verdict& verdict : wrong) texts.push_back(verdict.text);
  throw Error(wrong.front().code, fmt::format("{}", fmt::join(texts, "\n  ")));
}

}  // namespace lockstep::cli
