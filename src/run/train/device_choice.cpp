#include "run/train/device_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "comm/transport/gpu_transport.hpp"
#include "core/rdma.hpp"
#include "data/input/gpu_data.hpp"
#include "device/gpu/cuda_module.hpp"
#include "lockstep/error.hpp"
#include "observe/observers.hpp"
#include "observe/rank_gpu.hpp"
#include "ops/registry.hpp"
#include "run/train/backend.hpp"
#include "step/exec/gpu_device.hpp"
#include "step/exec/gpu_micro_batch_io.hpp"
#include "step/exec/memory_needs.hpp"
#include "step/optim/gpu_updater.hpp"

namespace lockstep::train {

namespace {

// GpuBackend: keeps gradients, model and, if they fit, the data on the rank's GPU.

class GpuBackend final : public Backend {
 public:
  explicit GpuBackend(exec::GpuSetup setup) : device_(std::move(setup)) {}

  const exec::GpuDevice& device() const override { return device_; }
  /// Starts NCCL if there are several ranks.
  ReduceAndUpdate make_step(const RunContext& run, Communicator& ranks, const optim::UpdaterSetup& setup,
                            const comm::GradientBuckets& buckets, const comm::ReducerOptions& options,
                            exec::WorkerPool& pool) const override;
  PlacedData place_data(const RunContext& run, const input::PreparedData& data, const Graph& graph,
                        const RunMemory& memory) const override;
  void emit_devices(const RunContext& run) const override;

 private:
  std::vector<exec::MemoryNeed> needs(const Graph& graph, const RunMemory& memory) const;

  exec::GpuDevice device_;
};

std::unique_ptr<const optim::UpdateKernels> make_update_kernels(const device::CudaModule& module) {
  auto* const make = module.library.find<optim::UpdateKernels*()>(optim::kModuleMakeUpdateKernels);
  LOCKSTEP_CHECK(make != nullptr, "a CUDA module of this build has the update's kernels");
  return std::unique_ptr<const optim::UpdateKernels>(make());
}

ReduceAndUpdate GpuBackend::make_step(const RunContext& run, Communicator& ranks, const optim::UpdaterSetup& setup,
                                      const comm::GradientBuckets& buckets, const comm::ReducerOptions& options,
                                      exec::WorkerPool& /*pool*/) const {
  auto reducer = device_.make_gpu_reducer(ranks, buckets, options);
  reducer->before_abort([run] { observe::write_flight(run.job.run_directory, run.communicator); });
  auto updater =
      std::make_unique<optim::GpuUpdater>(setup, device_.gpu(), *reducer, make_update_kernels(*device_.setup().module));
  return {std::move(reducer), std::move(updater)};
}

std::vector<exec::MemoryNeed> GpuBackend::needs(const Graph& graph, const RunMemory& memory) const {
  const exec::ProgramSetup program = memory.executor.setup();
  auto needs = memory.updater.memory_needs(memory.model);
  needs.push_back({"all-reduce of gradients", comm::GpuAllReduce::bytes(memory.reduced)});
  const auto of_workers = device_.needs_of_workers(program);
  needs.insert(needs.end(), of_workers.begin(), of_workers.end());
  needs.push_back({"libraries and graphs", exec::bytes_of_libraries(device_.gpu().free_memory())});
  if (memory.evaluates && program.part != nullptr) {  // evaluation has micro-batches of its own, which keep no more
                                                      // than training's
    for (exec::MemoryNeed need : of_workers) {
      need.what += " of evaluations";
      needs.push_back(std::move(need));
    }
  } else if (memory.evaluates) {
    needs.push_back({input::kInputsOfEvaluations, exec::GpuInputs::bytes(graph), program.workers});
  }
  return needs;
}

PlacedData GpuBackend::place_data(const RunContext& run, const input::PreparedData& data, const Graph& graph,
                                  const RunMemory& memory) const {
  const exec::ProgramSetup program = memory.executor.setup();
  const auto kept = input::put_gpu_data(run.job, run.communicator, device_, data, graph, memory.evaluates,
                                        {needs(graph, memory), program.workers, program.part == nullptr});
  return {.train = kept.train,
          .validation = kept.validation,
          .report = kept.summary,
          .max_micro_batches = comm::GpuAllReduce::max_micro_batches(memory.reduced, kept.left)};
}

void GpuBackend::emit_devices(const RunContext& run) const {
  observe::emit_gpus(run, device_.setup().facts, device_.setup().driver_cuda_version);
  run.warn(fmt::format("this version's code for GPUs: {}; compare what it trains with device: cpu (docs/gpu.md)",
                       kGpuCodeTested));
}

constexpr int kMinMajor = 8;  // minimum compute capability: what CMake compiles for
constexpr const char* kElse = ", or set device: cpu";

[[noreturn]] void refuse(const JobFile& job, const std::string& what) {
  throw Error(ExitCode::configuration, fmt::format("{}: {}{}", job.place_of("job.device").text(), what, kElse));
}

void require_driver(const JobFile& job, const GpuFacts& facts, const std::string& host) {
  using State = device::DriverState;
  const auto& driver = facts.driver;
  const std::string needed = device::cuda_version_text(facts.module_cuda_version);
  if (driver.state == State::absent) {
    refuse(job, fmt::format("expected NVIDIA's driver on {}, found none ({}); install one for CUDA {} or later, start "
                            "a container with its GPUs (--gpus all)",
                            host, driver.problem, needed));
  }
  if (driver.state == State::broken) {
    throw Error(ExitCode::unfit_host, fmt::format("expected NVIDIA's driver to work on {}, found: {}; {}{}", host,
                                                  driver.problem, driver.remedy, kElse));
  }
  // A driver supports every minor release of its major version.
  if (driver.cuda_version / 1000 < facts.module_cuda_version / 1000) {
    refuse(job, fmt::format("expected a driver for CUDA {} or later on {}, found one for CUDA {}; update the driver",
                            needed, host, device::cuda_version_text(driver.cuda_version)));
  }
  if (driver.state == State::no_gpu) {
    const std::string why =
        facts.visible ? fmt::format("CUDA_VISIBLE_DEVICES is '{}'; unset it", *facts.visible) : "see nvidia-smi -L";
    refuse(job, fmt::format("expected a GPU on {}, found none: {}", host, why));
  }
}

void require_rdma(const std::string& host) {
  const std::string problem = rdma_problem(rdma_facts(), host);
  if (!problem.empty()) throw Error(ExitCode::unfit_host, problem);
}

std::vector<std::size_t> wanted_gpus(const JobFile& job, const GpuFacts& facts, const std::string& host) {
  const std::size_t present = facts.driver.gpus.size();
  std::vector<std::size_t> wanted;
  for (const std::int64_t device : job.devices) {
    if (device >= static_cast<std::int64_t>(present)) {
      throw Error(
          ExitCode::configuration,
          fmt::format("{}: expected GPUs of {}, numbered 0 to {}: device {} asked for, {} present; leave it out",
                      job.place_of("job.devices").text(), host, present - 1, device, present));
    }
    wanted.push_back(device);
  }
  for (std::size_t i = 0; wanted.size() < present && job.devices.empty(); ++i) wanted.push_back(i);
  return wanted;
}

/// The GPU's number in `devices` and in the output of `lockstep doctor`.
std::ptrdiff_t number_of(const device::GpuInfo& gpu, const device::DriverFacts& driver) {
  const auto same = [&](const device::GpuInfo& other) { return other.ordinal == gpu.ordinal; };
  return std::find_if(driver.gpus.begin(), driver.gpus.end(), same) - driver.gpus.begin();
}

GpuFacts facts_with(const device::CudaModule& module) {
  GpuFacts facts;
  facts.module_problem = module.problem;
  facts.module_cuda_version = module.cuda_version;
  facts.driver = device::ask_driver();
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES"); visible != nullptr) facts.visible = visible;
  facts.shared = std::getenv("LOCKSTEP_SHARE_GPUS") != nullptr;
  return facts;
}

/// each_has_its_own() for this rank's host.
bool ranks_have_their_own(const device::DriverFacts& driver, Communicator& communicator) {
  constexpr std::size_t kLongest = 32;
  const std::size_t ranks = communicator.size();
  std::string all(kLongest * ranks, '\0'), mine(kLongest, '\0');
  if (driver.gpus.size() == 1) mine.replace(0, driver.gpus[0].pci_bus.size(), driver.gpus[0].pci_bus);
  communicator.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)), {"the ranks' GPUs"});
  std::vector<std::string> seen;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    if (!communicator.topology().same_host(rank, communicator.rank())) continue;
    seen.emplace_back(all.c_str() + kLongest * rank);
  }
  return each_has_its_own(std::move(seen));
}

}  // namespace

bool each_has_its_own(std::vector<std::string> seen) {
  std::sort(seen.begin(), seen.end());
  return (seen.empty() || !seen.front().empty()) && std::adjacent_find(seen.begin(), seen.end()) == seen.end();
}

GpuFacts ask_gpu_facts() {
  const device::CudaModule module = device::open_module();
  GpuFacts facts = facts_with(module);
  if (module) facts.module_libraries = fmt::format("{}, {}", module.libraries, comm::transport_library(module));
  return facts;
}

device::GpuInfo choose_gpu(const JobFile& job, const GpuFacts& facts, const LocalRank& local) {
  if (!facts.module_problem.empty()) refuse(job, facts.module_problem);
  require_driver(job, facts, local.host);
  const auto wanted = wanted_gpus(job, facts, local.host);
  if (local.local_size > static_cast<int>(wanted.size()) && !facts.shared && !local.has_own) {
    throw Error(
        ExitCode::usage,
        fmt::format("rank {} on {}: expected a GPU for each rank, found {} ranks and {} {} there; start at most "
                    "{} on this host",
                    local.rank, local.host, local.local_size, wanted.size(),
                    job.devices.empty() ? "visible" : "in devices", wanted.size()));
  }
  const std::size_t turn = local.local_rank % wanted.size();
  const device::GpuInfo& gpu = facts.driver.gpus.at(wanted.at(turn));
  if (gpu.major < kMinMajor) {
    refuse(job, fmt::format("expected a GPU of compute capability {}.0 or later for rank {} on {}, found {}; leave it "
                            "out by devices",
                            kMinMajor, local.rank, local.host, text_of(gpu)));
  }
  return gpu;
}

std::string idle_gpus(const device::DriverFacts& driver, const std::string& host) {
  if (driver.gpus.empty()) return "";
  return fmt::format(
      "job.device: auto trains on the CPU, and {} has {} ({}) that stay idle; set device: cuda, or device: cpu if that "
      "is meant",
      host, driver.gpus.size() == 1 ? "a GPU" : fmt::format("{} GPUs", driver.gpus.size()), driver.gpus[0].name);
}

std::unique_ptr<Backend> choose_backend(const JobFile& job, Communicator& communicator) {
  if (is_rdma_required()) require_rdma(communicator.topology().host_name(communicator.rank()));
  if (job.device != DeviceChoice::cuda) return std::make_unique<CpuBackend>();
  // A rank has more streams than the driver's default number of connections to the GPU; streams that share one wait for
  // each other.
  (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  const Topology& topology = communicator.topology();
  const int rank = communicator.rank();
  const auto module = std::make_shared<const device::CudaModule>(device::open_module());
  const GpuFacts facts = facts_with(*module);
  const LocalRank local{topology.host_name(rank), rank, topology.local_rank(rank), topology.local_size(rank),
                        ranks_have_their_own(facts.driver, communicator)};
  const device::GpuInfo gpu = choose_gpu(job, facts, local);
  // NCCL refuses two ranks of one host on the same GPU, so ranks that share one each claim to be a host of their own.
  // Ranks of pretended hosts (LOCKSTEP_HOST_ID) may also share a GPU.
  const auto gpus = job.devices.empty() ? facts.driver.gpus.size() : job.devices.size();
  const bool meet = local.local_size > static_cast<int>(gpus) || std::getenv("LOCKSTEP_HOST_ID") != nullptr;
  if (facts.shared && meet && !local.has_own) (void)setenv("NCCL_HOSTID", fmt::format("rank-{}", rank).c_str(), 0);
  const device::GpuPlace named{local.host, rank,
                               fmt::format("GPU {} ({}, {})", number_of(gpu, facts.driver), gpu.name, gpu.pci_bus)};
  auto kernels = std::make_shared<OpRegistry>();
  ops::add_built_in(*kernels);
  ops::add_gpu_kernels(*module, *kernels);
  exec::GpuSetup setup;
  setup.info = {
      DeviceKind::cuda, gpu.name, fmt::format("sm_{}{}", gpu.major, gpu.minor),
      fmt::format("{}, driver for CUDA {}", module->libraries, device::cuda_version_text(facts.driver.cuda_version))};
  setup.gpu = device::make_gpu(*module, gpu.ordinal, named);
  setup.kernels = std::move(kernels);
  setup.graphs = job.cuda_graphs;
  setup.facts = gpu;
  setup.driver_cuda_version = facts.driver.cuda_version;
  setup.module = module;
  setup.place = named;
  setup.peak_flops = device::peak_flops(gpu, job.precision);
  setup.profiler = device::make_profiler(*module);
  return std::make_unique<GpuBackend>(std::move(setup));
}

}  // namespace lockstep::train
