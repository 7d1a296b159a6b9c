#include "observe/rank_gpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "observe/telemetry/text.hpp"

namespace lockstep::observe {

namespace {

constexpr const char* kNvml = "libnvidia-ml.so.1";  // part of the driver

std::string library_named() {
  const char* given = std::getenv("LOCKSTEP_NVML");
  return given == nullptr ? "" : given;
}

}  // namespace

RankGpu rank_gpu(const RankContext& run) {
  const std::string named = library_named();
  const std::string bus = run.device.pci_bus();
  if (named.empty() && bus.empty()) return {};
  const auto& communicator = run.communicator;
  RankGpu gpu;
  gpu.computes = !bus.empty();
  gpu.device = gpu.computes ? bus : std::to_string(communicator.topology().local_rank(communicator.rank()));
  gpu.library = telemetry::nvml::Library::load(named.empty() ? kNvml : named, gpu.problem);
  if (gpu.library && find_gpu(*gpu.library, gpu.device, gpu.problem) == nullptr) gpu.library.reset();
  return gpu;
}

std::string driver_version() {
  const std::string named = library_named();
  std::string problem;
  const auto library = telemetry::nvml::Library::load(named.empty() ? kNvml : named, problem);
  return library ? telemetry::nvml::driver_version(*library) : "";
}

namespace {

using device::GpuInfo;

/// The form in which ranks exchange it; all ranks run the same program.
struct Row {
  std::array<char, 128> name{};
  std::array<char, 32> pci_bus{};
  std::array<char, 80> driver_version{};
  std::int64_t memory_bytes = 0;
  std::array<std::int32_t, 6> numbers{};
};

template <std::size_t Size>
void put(const std::string& text, std::array<char, Size>& cell) {
  std::copy_n(text.begin(), std::min(text.size(), Size - 1), cell.begin());
}

Row row_of(const GpuInfo& gpu, int driver_cuda_version) {
  Row row;
  put(gpu.name, row.name);
  put(gpu.pci_bus, row.pci_bus);
  put(driver_version(), row.driver_version);
  row.memory_bytes = gpu.memory_bytes;
  row.numbers = {gpu.major, gpu.minor, gpu.multiprocessors, gpu.clock_mhz, gpu.memory_clock_mhz, driver_cuda_version};
  return row;
}

GpuAndDriver from_row(const Row& row) {
  GpuAndDriver reported{{}, row.numbers.back(), row.driver_version.data()};
  GpuInfo& gpu = reported.gpu;
  gpu.name = row.name.data();
  gpu.pci_bus = row.pci_bus.data();
  gpu.memory_bytes = row.memory_bytes;
  gpu.major = row.numbers[0];
  gpu.minor = row.numbers[1];
  gpu.multiprocessors = row.numbers[2];
  gpu.clock_mhz = row.numbers[3];
  gpu.memory_clock_mhz = row.numbers[4];
  return reported;
}

std::string capability(const GpuInfo& gpu) {
  return fmt::format("{}.{}", gpu.major, gpu.minor);
}

/// The properties that GPUs are compared by.
std::vector<std::pair<std::string, std::string>> properties(const GpuAndDriver& rank) {
  const GpuInfo& gpu = rank.gpu;
  return {{"model", gpu.name},
          {"memory", fmt::format("{:.1f} GiB", static_cast<double>(gpu.memory_bytes) / (1 << 30))},
          {"compute capability", capability(gpu)},
          {"multiprocessors", fmt::format("{}", gpu.multiprocessors)},
          {"clock", fmt::format("{} MHz", gpu.clock_mhz)},
          {"memory clock", fmt::format("{} MHz", gpu.memory_clock_mhz)},
          {"driver", driver_text(rank.driver_version, rank.driver_cuda_version)}};
}

}  // namespace

std::string driver_text(const std::string& version, int cuda_version) {
  return telemetry::driver_text(version, device::cuda_version_text(cuda_version));
}

std::string differences(const std::vector<GpuAndDriver>& ranks) {
  std::string text;
  const auto first = properties(ranks.front());
  for (std::size_t p = 0; p < first.size(); ++p) {
    for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
      const auto other = properties(ranks[rank])[p].second;
      if (other == first[p].second) continue;
      text += fmt::format("{}{} (rank 0: {}, rank {}: {})", text.empty() ? "" : ", ", first[p].first, first[p].second,
                          rank, other);
      break;
    }
  }
  return text;
}

void emit_gpus(const RankContext& run, const GpuInfo& own, int driver_cuda_version) {
  const Row mine = row_of(own, driver_cuda_version);
  std::vector<Row> all(run.communicator.size());
  run.communicator.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)),
                              {"GPUs of the ranks", 0, run.timeout()});
  std::vector<GpuAndDriver> ranks;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const GpuAndDriver& known = ranks.emplace_back(from_row(all[rank]));
    const GpuInfo& gpu = known.gpu;
    events::Gpu event{.rank = static_cast<std::int64_t>(rank),
                      .host = run.communicator.topology().host_name(rank),
                      .model = gpu.name,
                      .memory_bytes = gpu.memory_bytes,
                      .compute_capability = capability(gpu),
                      .multiprocessors = gpu.multiprocessors,
                      .clock_mhz = gpu.clock_mhz,
                      .memory_clock_mhz = gpu.memory_clock_mhz,
                      .pci_bus = gpu.pci_bus,
                      .driver = device::cuda_version_text(known.driver_cuda_version)};
    if (!known.driver_version.empty()) event.driver_version = known.driver_version;
    run.emit(event);
  }
  if (const std::string what = differences(ranks); !what.empty()) {
    run.warn(
        fmt::format("the GPUs differ in {}; with balance: auto each rank gets micro-batches by its speed "
                    "(docs/balancing.md)",
                    what));
  }
}

}  // namespace lockstep::observe
