// Which device a rank computes on: `device` and `devices` of the job against what this host has.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/gpu/driver.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/job.hpp"
#include "train/backend.hpp"

namespace lockstep::train {

/// What decides, on one host.
struct GpuFacts {
  device::DriverFacts driver;
  std::string module_problem;          ///< why there is no CUDA module; empty: there is one
  int module_cuda_version = 0;         ///< that it was built with
  std::string module_libraries;        ///< that it was loaded with: "CUDA runtime 13000, ..., NCCL 2.28.3"
  std::optional<std::string> visible;  ///< CUDA_VISIBLE_DEVICES, where it is set
  bool shared = false;                 ///< LOCKSTEP_SHARE_GPUS: several ranks may take one GPU, for tests
};

/// Asks the driver and opens the CUDA module.
[[nodiscard]] GpuFacts ask_gpu_facts();

/// Who wants a GPU.
struct LocalRank {
  std::string host;
  int rank = 0, local_rank = 0, local_size = 1;
  bool has_own = false;  ///< each rank of the host sees one GPU, which no other sees
};

/// Whether each of a host's ranks sees one GPU only, and none the same, as where Slurm (--gpus-per-task=1) or a wrapper
/// sets CUDA_VISIBLE_DEVICES for each. `seen`: the PCI bus of the rank's only GPU; empty where it sees none or several.
[[nodiscard]] bool each_has_its_own(std::vector<std::string> seen);

/// The GPU of this rank: the local ranks take the job's `devices`, or all, in order of their PCI bus. Where
/// GPUs are shared, ranks beyond their number begin anew with the first. Throws Error(configuration) where this host
/// cannot do what the job says, Error(usage) where it has too many ranks.
[[nodiscard]] device::GpuInfo choose_gpu(const JobFile& job, const GpuFacts& facts, const LocalRank& local);

/// What this rank trains with: its CPU, unless the job says `device: cuda`. Throws as choose_gpu(). All ranks
/// call it together.
[[nodiscard]] std::unique_ptr<Backend> choose_backend(const JobFile& job, Communicator& communicator);

}  // namespace lockstep::train
