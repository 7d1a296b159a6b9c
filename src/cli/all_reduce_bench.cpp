#include "cli/all_reduce_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "cli/svg_chart.hpp"
#include "comm/transport/mpi_session.hpp"
#include "comm/transport/topology.hpp"
#include "core/errno_code.hpp"
#include "core/median.hpp"
#include "core/words.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/text.hpp"
#include "run/train/device_choice.hpp"
#include "tools/bench/reduce_times.hpp"

namespace lockstep::cli {

namespace {

const std::vector<std::uint64_t> kSizes = {4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20};
constexpr std::chrono::hours kLongestPart{24};  ///< how long ranks outside a part wait for it to finish

/// Who sums the gradients. `library` is the one for the device that holds the gradients; `mpi` sums on the hosts.
enum class Adder : std::uint8_t { exact, plain, library, mpi };

struct Way {
  Adder adder;
  const char* name;
  std::string title;  ///< for the table and the picture
};

/// The first one is the exact all-reduce.
std::vector<Way> ways_of(const exec::Device& device) {
  const std::string library = device.all_reduce_library();
  std::vector<Way> ways = {{Adder::exact, "exact", "exact all-reduce"},
                           {Adder::plain, "plain", "exact: never"},
                           {Adder::library, "library", library + " all-reduce"}};
  if (library != "MPI") ways.push_back({Adder::mpi, "mpi", "MPI all-reduce, on CPUs"});
  return ways;
}

/// The result of one way; sent between ranks as it is.
struct AllReduceRow {
  std::uint64_t bytes = 0;
  std::int64_t ranks = 0;
  double median = 0, best = 0;  ///< seconds
  double bus_bytes_per_second = 0;
  std::uint64_t shared_memory_bytes = 0, network_bytes = 0;
};

/// A group of ranks that are timed together.
struct Part {
  const char* name;
  const char* title;                    ///< for the table
  Communicator* ranks = nullptr;        ///< null: this rank is not in the group
  std::shared_ptr<Communicator> owned;  ///< set if the group is not all ranks
};

/// 65536 -> "64 KiB", as on the command line.
std::string size_text(double bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.4g} {}", bytes, kUnits.at(unit));
}

Part group(const char* name, const char* title, Communicator& all, const std::vector<int>& ranks) {
  Part part{name, title, nullptr, nullptr};
  if (std::find(ranks.begin(), ranks.end(), all.rank()) == ranks.end()) return part;
  part.owned = comm::make_mpi_group(all, ranks);
  part.ranks = part.owned.get();
  return part;
}

/// If hosts have several ranks, communication within hosts and between them is first timed separately.
std::vector<Part> parts_of(Communicator& communicator) {
  const comm::Hosts hosts(communicator.topology());
  std::vector<Part> parts;
  if (hosts.count() > 1 && hosts.count() < communicator.size()) {
    std::vector<int> firsts;
    for (int host = 0; host < hosts.count(); ++host) firsts.push_back(hosts.ranks(host).front());
    parts.push_back(
        group("within", "within hosts: all hosts at the same time, each among its own ranks; time of the slowest host",
              communicator, hosts.ranks(hosts.host_of(communicator.rank()))));
    parts.push_back(group("between", "between hosts: one rank of each host", communicator, firsts));
  }
  parts.push_back({"all", "all ranks", &communicator, nullptr});
  return parts;
}

bench::ReduceTimes time_way(Communicator& ranks, const AllReduceBenchOptions& options, const exec::Device& device,
                            Adder adder, std::int64_t elements) {
  const auto place = device.reduce_device(ranks, bench::kTimeout);
  const bench::ReduceLoad load{.elements = elements, .micro_batches_a_rank = options.micro_batches_a_rank};
  switch (adder) {
    case Adder::library:
      return bench::time_all_reduce(ranks, elements, options.rounds, place);
    case Adder::mpi:
      return bench::time_all_reduce(ranks, elements, options.rounds);
    default:
      return bench::time_reduce(ranks, load, adder == Adder::exact, options.rounds, place);
  }
}

AllReduceRow row_of(const bench::ReduceTimes& times, int ranks, std::uint64_t bytes) {
  const double seconds = median(times.seconds);
  return {.bytes = bytes,
          .ranks = ranks,
          .median = seconds,
          .best = *std::min_element(times.seconds.begin(), times.seconds.end()),
          .bus_bytes_per_second = bench::bus_bandwidth(bytes, ranks, seconds),
          .shared_memory_bytes = times.shared_memory_bytes,
          .network_bytes = times.network_bytes};
}

/// The row of the slowest rank, the same on every rank.
AllReduceRow slowest(Communicator& all, const AllReduceRow& mine) {
  std::vector<AllReduceRow> rows(all.size());
  all.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(rows)),
                 {"bench", 0, kLongestPart});
  return *std::max_element(rows.begin(), rows.end(),
                           [](const AllReduceRow& a, const AllReduceRow& b) { return a.median < b.median; });
}

/// One row for each way.
std::vector<AllReduceRow> measure(Communicator& all, const Part& part, const AllReduceBenchOptions& options,
                                  const exec::Device& device, std::uint64_t bytes) {
  std::vector<AllReduceRow> rows;
  for (const Way& way : ways_of(device)) {
    AllReduceRow mine;
    if (part.ranks != nullptr) {
      const std::int64_t elements = bytes / sizeof(float);
      mine = row_of(time_way(*part.ranks, options, device, way.adder, elements), part.ranks->size(), bytes);
    }
    rows.push_back(slowest(all, mine));
  }
  return rows;
}

void print_heading(const Communicator& communicator, const AllReduceBenchOptions& options) {
  const auto& topology = communicator.topology();
  fmt::print(
      "{} rank{} on {} host{}, {} micro-batch{} per rank, {} rounds: median of the slowest rank, and bus bandwidth\n",
      communicator.size(), communicator.size() == 1 ? "" : "s", topology.host_names.size(),
      topology.host_names.size() == 1 ? "" : "s", options.micro_batches_a_rank,
      options.micro_batches_a_rank == 1 ? "" : "es", options.rounds);
}

void print_columns(const Part& part, bool only_one, const std::vector<Way>& ways) {
  fmt::print("\n");
  if (!only_one) fmt::print("{}\n", part.title);
  fmt::print("{:>10}", "size");
  for (const Way& way : ways) fmt::print("  {:>24}", way.title);
  fmt::print("  {:>12}  {:>12}\n", "in memory", "by network");
}

void print_rows(const std::vector<AllReduceRow>& rows) {
  fmt::print("{:>10}", size_text(rows[0].bytes));
  for (const AllReduceRow& row : rows) {
    fmt::print("  {:>9.3f} ms {:>10}/s", 1e3 * row.median, byte_count(row.bus_bytes_per_second));
  }
  fmt::print("  {:>12}  {:>12}\n", byte_count(rows[0].shared_memory_bytes), byte_count(rows[0].network_bytes));
}

void print_all_reduce_json(const Part& part, const std::vector<Way>& ways, const std::vector<AllReduceRow>& rows) {
  for (std::size_t w = 0; w < rows.size(); ++w) {
    const AllReduceRow& row = rows[w];
    nlohmann::ordered_json line;
    line["event"] = "all_reduce";
    line["part"] = part.name;
    line["way"] = ways[w].name;
    line["ranks"] = row.ranks;
    line["bytes"] = row.bytes;
    line["seconds_median"] = row.median;
    line["seconds_best"] = row.best;
    line["bus_bytes_per_second"] = row.bus_bytes_per_second;
    line["shared_memory_bytes"] = row.shared_memory_bytes;
    line["network_bytes"] = row.network_bytes;
    fmt::print("{}\n", line.dump());
  }
}

/// The curve of one way over the sizes.
Series series_of(const std::string& name, const std::vector<std::vector<AllReduceRow>>& sizes, std::size_t way) {
  Series series{name, {}};
  for (const auto& rows : sizes) {
    series.points.emplace_back(static_cast<double>(rows[way].bytes), rows[way].bus_bytes_per_second / 1e9);
  }
  return series;
}

/// `parts`: rows by part, size and way. Draws all ways for all ranks, and only the exact all-reduce for the other
/// parts.
void draw(const std::vector<std::vector<std::vector<AllReduceRow>>>& parts, const std::vector<Way>& ways,
          const std::string& path) {
  std::vector<Series> series;
  for (std::size_t w = 0; w < ways.size(); ++w) series.push_back(series_of(ways[w].title, parts.back(), w));
  if (parts.size() > 1) {
    series.push_back(series_of("exact, within hosts", parts[0], 0));
    series.push_back(series_of("exact, between hosts", parts[1], 0));
  }
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if ((file << drawing("Bus bandwidth in GB/s over the size of the gradient", size_text, series)).flush()) return;
  const int error = errno;
  throw Error(code_of_errno(error, ExitCode::cannot_create),
              fmt::format("{}: cannot write the picture: {}", path, std::strerror(error)));
}

}  // namespace

int bench_all_reduce(Communicator& communicator, const AllReduceBenchOptions& options) {
  const bool leads = communicator.rank() == 0, people = options.log == "people";
  Job job;
  job.device = value_of<DeviceChoice>(options.device);
  const auto backend = train::choose_backend(job, communicator);
  const exec::Device& device = backend->device();
  const std::vector<Way> ways = ways_of(device);
  const std::vector<Part> parts = parts_of(communicator);
  if (leads && people) print_heading(communicator, options);
  std::vector<std::vector<std::vector<AllReduceRow>>> all;  // by part, size and way
  for (const Part& part : parts) {
    all.emplace_back();
    if (leads && people) print_columns(part, parts.size() == 1, ways);
    for (const std::uint64_t bytes : options.sizes.empty() ? kSizes : options.sizes) {
      const auto& rows = all.back().emplace_back(measure(communicator, part, options, device, bytes));
      if (!leads) continue;
      people ? print_rows(rows) : print_all_reduce_json(part, ways, rows);
      (void)std::fflush(stdout);
    }
  }
  if (leads && !options.picture.empty()) draw(all, ways, options.picture);
  return 0;
}

}  // namespace lockstep::cli
