#include "cli/device_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <vector>

#include "core/median.hpp"
#include "core/spans.hpp"
#include "core/whole_file.hpp"
#include "device/threads.hpp"
#include "lockstep/error.hpp"
#include "lockstep/trainer.hpp"
#include "observe/telemetry/text.hpp"
#include "run/plan/limits.hpp"
#include "run/plan/measure.hpp"
#include "run/plan/profile.hpp"
#include "run/plan/report.hpp"
#include "step/exec/cpu_device.hpp"

namespace lockstep::cli {

namespace {

constexpr std::size_t kLongMessage = std::size_t{4} << 20;
constexpr int kShortRounds = 100, kLongRounds = 20;

/// One-way time of a message in seconds, between the first two ranks; 0 on others.
double message_seconds(Communicator& communicator, std::size_t bytes, int rounds) {
  const Operation operation{"messages", 0};
  communicator.barrier(operation);
  if (communicator.rank() > 1) return 0;
  const int other = 1 - communicator.rank();
  std::vector<std::byte> mine(bytes), theirs(bytes);
  std::vector<double> seconds;
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    const auto come = communicator.receive(theirs, other, 1);
    if (communicator.rank() == 1) come->wait(operation);
    const auto sent = communicator.send(mine, other, 1);
    if (communicator.rank() == 0) come->wait(operation);
    sent->wait(operation);
    seconds.push_back(seconds_since(start) / 2);
  }
  return median(std::move(seconds));
}

void measure_messages(Communicator& communicator, plan::Rates& rates) {
  if (communicator.size() < 2) return;
  const double empty = message_seconds(communicator, sizeof(float), kShortRounds);
  const double whole = message_seconds(communicator, kLongMessage, kLongRounds);
  if (communicator.rank() > 1) return;
  rates.message_seconds = empty;
  rates.message_bytes = kLongMessage / std::max(whole - empty, 1e-9);
}

/// The median over the ranks of each rate that all ranks have measured.
plan::Rates typical(Communicator& communicator, plan::Rates rates) {
  const std::array<double*, 5> values = {&rates.matmul_flops, &rates.conv_flops, &rates.element_bytes, &rates.add_bytes,
                                         &rates.update_bytes};
  std::array<double, 5> mine{};
  for (std::size_t i = 0; i < mine.size(); ++i) mine.at(i) = *values.at(i);
  std::vector<double> all(mine.size() * communicator.size());
  communicator.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)), {"rates", 0});
  for (std::size_t i = 0; i < mine.size(); ++i) {
    std::vector<double> of_ranks;
    for (std::size_t at = i; at < all.size(); at += mine.size()) of_ranks.push_back(all[at]);
    *values.at(i) = median(std::move(of_ranks));
  }
  return rates;
}

void print_rates(const plan::Rates& rates, int ranks) {
  fmt::print("{}, {}, {}; {} measured at once, one thread each\n", rates.device,
             telemetry::counted(rates.cores, "core"), plan::size_text(rates.memory), telemetry::counted(ranks, "rank"));
  const auto bytes = [](double value) { return telemetry::byte_count(value) + "/s"; };
  fmt::print("{}", plan::table_text({{"matrix products", fmt::format("{:.1f} GFLOP/s", 1e-9 * rates.matmul_flops)},
                                     {"convolutions", fmt::format("{:.1f} GFLOP/s", 1e-9 * rates.conv_flops)},
                                     {"elementwise kernels", bytes(rates.element_bytes)},
                                     {"adding gradients", bytes(rates.add_bytes)},
                                     {"updates (AdamW)", bytes(rates.update_bytes)},
                                     {"a message", fmt::format("{:.1f} us", 1e6 * rates.message_seconds)},
                                     {"long messages", bytes(rates.message_bytes)}}));
  if (ranks == 1) fmt::print("  one rank sends nobody messages: those two are assumed\n");
}

}  // namespace

int bench_device(Communicator& communicator, const DeviceBenchOptions& options) {
  const Registries registries = Registries::built_in();
  const exec::CpuDevice device;
  communicator.barrier({"rates", 0});
  plan::Rates rates = plan::measure_rates(device, registries.ops, registries.models, registries.optimizers, 1);
  rates = typical(communicator, rates);
  measure_messages(communicator, rates);
  if (communicator.rank() != 0) return 0;
  rates.memory = plan::memory_of_host();
  rates.cores = device::available_cores();
  print_rates(rates, communicator.size());
  if (options.out.empty()) return 0;
  const std::string failure = try_write_whole_file(options.out, plan::profile_text(rates));
  if (failure.empty()) return 0;
  throw Error(ExitCode::cannot_create, fmt::format("--out: cannot write '{}': {}; give a path in a folder that can be "
                                                   "written to",
                                                   options.out, failure));
}

}  // namespace lockstep::cli
