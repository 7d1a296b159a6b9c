// Chooses the device that a rank computes on, from `device` and `devices` of the job and what this host has.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/gpu/driver.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/job.hpp"
#include "run/train/backend.hpp"

namespace lockstep::train {

/// How far this version's code for GPUs has been tested: said by doctor, at the start of a run on a GPU, and in docs.
inline constexpr const char* kGpuCodeTested =
    "its kernels are tested by interpreting nvcc's PTX; it has run on one H200, not on several GPUs";

/// What the choice depends on, on one host.
struct GpuFacts {
  device::DriverFacts driver;
  std::string module_problem;          ///< why there is no CUDA module; empty: there is one
  int module_cuda_version = 0;         ///< that it was built with
  std::string module_libraries;        ///< that it was loaded with: "CUDA runtime 13000, ..., NCCL 2.28.3"
  std::optional<std::string> visible;  ///< CUDA_VISIBLE_DEVICES, if set
  bool shared = false;                 ///< LOCKSTEP_SHARE_GPUS: several ranks may use one GPU, for tests
};

/// Asks the driver and opens the CUDA module.
[[nodiscard]] GpuFacts ask_gpu_facts();

/// A rank that needs a GPU.
struct LocalRank {
  std::string host;
  int rank = 0, local_rank = 0, local_size = 1;
  bool has_own = false;  ///< each rank of the host sees a single GPU, which no other rank sees
};

/// Whether each of a host's ranks sees exactly one GPU and no two see the same, as when Slurm (--gpus-per-task=1) or a
/// wrapper sets CUDA_VISIBLE_DEVICES for each rank. `seen`: by rank, the PCI bus of its only GPU; empty if it sees none
/// or several.
[[nodiscard]] bool each_has_its_own(std::vector<std::string> seen);

/// The GPU of this rank: local ranks get the job's `devices`, or all, in order of PCI bus. If GPUs are shared, ranks
/// beyond their number start again at the first. Throws Error(configuration) if this host cannot do what the job asks
/// for, Error(usage) if it has too many ranks.
[[nodiscard]] device::GpuInfo choose_gpu(const JobFile& job, const GpuFacts& facts, const LocalRank& local);

/// Says that a host has GPUs and `device: auto` does not use them; empty if it has none.
[[nodiscard]] std::string idle_gpus(const device::DriverFacts& driver, const std::string& host);

/// What this rank trains with: its CPU, unless the job says `device: cuda`. Throws as choose_gpu(). Collective.
[[nodiscard]] std::unique_ptr<Backend> choose_backend(const JobFile& job, Communicator& communicator);

}  // namespace lockstep::train
