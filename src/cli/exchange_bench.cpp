#include "cli/exchange_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/svg_chart.hpp"
#include "comm/exchange_times.hpp"
#include "core/median.hpp"
#include "lockstep/error.hpp"
#include "telemetry/text.hpp"
#include "train/device_choice.hpp"

namespace lockstep::cli {

namespace {

constexpr std::chrono::milliseconds kPatience{60'000};
const std::vector<std::uint64_t> kSizes = {4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20};

/// One way to add up the gradients of all ranks.
struct Way {
  const char* name;
  const char* title;  ///< for people
};
constexpr Way kExact{"exact", "exact exchange"}, kPlain{"plain", "exact: never"};

/// The library's own all-reduce.
Way library(const ExchangeBenchOptions& options) {
  return {"library", options.device == "cuda" ? "NCCL all-reduce" : "MPI all-reduce"};
}

struct Row {
  Way way;
  std::uint64_t bytes = 0;
  comm::ExchangeTimes times;
  double bus_bytes_per_second = 0;  ///< filled in later

  [[nodiscard]] double seconds() const { return median(times.seconds); }
};

/// 65536 -> "64 KiB", as sizes are asked for.
std::string size_text(double bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.4g} {}", bytes, kUnits.at(unit));
}

comm::ExchangePlace place_of(const exec::Device& device, Communicator& communicator) {
  if (!device.is_gpu()) return {};
  backend::Gpu& gpu = device.lanes->gpu();
  return {&gpu,
          [&] { return comm::make_gpu_messages(*device.module, communicator, gpu, device.gpu_place, kPatience); }};
}

std::vector<Row> measure(Communicator& communicator, const ExchangeBenchOptions& options,
                         const comm::ExchangePlace& place, std::uint64_t bytes) {
  const comm::ExchangeLoad load{.elements = static_cast<std::int64_t>(bytes / sizeof(float)),
                                .shards_a_rank = options.shards_a_rank};
  std::vector<Row> rows;
  rows.push_back({kExact, bytes, comm::time_exchange(communicator, load, true, options.rounds, place)});
  rows.push_back({kPlain, bytes, comm::time_exchange(communicator, load, false, options.rounds, place)});
  rows.push_back({library(options), bytes, comm::time_all_reduce(communicator, load.elements, options.rounds, place)});
  for (Row& row : rows) {
    row.bus_bytes_per_second = comm::bus_bandwidth(static_cast<double>(bytes), communicator.size(), row.seconds());
  }
  return rows;
}

void print_heading(const Communicator& communicator, const ExchangeBenchOptions& options) {
  const auto& topology = communicator.topology();
  fmt::print("{} rank{} on {} host{}, {} shard{} a rank, {} rounds: median of the slowest rank, and bus bandwidth\n\n",
             communicator.size(), communicator.size() == 1 ? "" : "s", topology.host_names.size(),
             topology.host_names.size() == 1 ? "" : "s", options.shards_a_rank, options.shards_a_rank == 1 ? "" : "s",
             options.rounds);
  fmt::print("{:>10}", "size");
  for (const Way& way : {kExact, kPlain, library(options)}) fmt::print("  {:>24}", way.title);
  fmt::print("  {:>12}  {:>12}\n", "in memory", "by network");
}

void print_rows(const std::vector<Row>& rows) {
  using telemetry::byte_count;
  fmt::print("{:>10}", size_text(static_cast<double>(rows[0].bytes)));
  for (const Row& row : rows) {
    fmt::print("  {:>9.3f} ms {:>10}/s", 1e3 * row.seconds(), byte_count(row.bus_bytes_per_second));
  }
  fmt::print("  {:>12}  {:>12}\n", byte_count(static_cast<double>(rows[0].times.shared_memory_bytes)),
             byte_count(static_cast<double>(rows[0].times.network_bytes)));
}

void print_json(const std::vector<Row>& rows, int ranks) {
  for (const Row& row : rows) {
    nlohmann::ordered_json line;
    line["event"] = "exchange";
    line["way"] = row.way.name;
    line["ranks"] = ranks;
    line["bytes"] = row.bytes;
    line["seconds_median"] = row.seconds();
    line["seconds_best"] = *std::min_element(row.times.seconds.begin(), row.times.seconds.end());
    line["bus_bytes_per_second"] = row.bus_bytes_per_second;
    line["shared_memory_bytes"] = row.times.shared_memory_bytes;
    line["network_bytes"] = row.times.network_bytes;
    fmt::print("{}\n", line.dump());
  }
}

void draw(const std::vector<std::vector<Row>>& sizes, const std::string& path) {
  std::vector<Series> series;
  for (std::size_t w = 0; w < sizes[0].size(); ++w) {
    Series& one = series.emplace_back(Series{sizes[0][w].way.title, {}});
    for (const auto& rows : sizes) {
      one.points.emplace_back(static_cast<double>(rows[w].bytes), rows[w].bus_bytes_per_second / 1e9);
    }
  }
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if ((file << drawing("Bus bandwidth in GB/s over the size of the gradient", size_text, series)).flush()) return;
  throw Error(ExitCode::cannot_create, fmt::format("{}: cannot write the picture: {}", path, std::strerror(errno)));
}

}  // namespace

int bench_exchange(Communicator& communicator, const ExchangeBenchOptions& options) {
  const bool leads = communicator.rank() == 0, people = options.log == "people";
  Job job;
  job.device = options.device;
  const exec::Device device = train::choose_device(job, communicator);
  const comm::ExchangePlace place = place_of(device, communicator);
  if (leads && people) print_heading(communicator, options);
  std::vector<std::vector<Row>> all;
  for (const std::uint64_t bytes : options.sizes.empty() ? kSizes : options.sizes) {
    all.push_back(measure(communicator, options, place, bytes));
    if (!leads) continue;
    people ? print_rows(all.back()) : print_json(all.back(), communicator.size());
    (void)std::fflush(stdout);
  }
  if (leads && !options.picture.empty()) draw(all, options.picture);
  return 0;
}

}  // namespace lockstep::cli
