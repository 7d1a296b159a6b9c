// What NVIDIA's driver reports about this machine, queried without any CUDA library: libcuda.so.1 comes with the driver
// and is opened at run time, so the same program runs with and without GPUs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/choices.hpp"

namespace lockstep::device {

struct GpuInfo {
  int ordinal = 0;                ///< the driver's number for it, among the visible GPUs
  std::string name;               ///< "NVIDIA H100 80GB HBM3"
  std::int64_t memory_bytes = 0;  ///< of the card
  int major = 0, minor = 0;       ///< compute capability
  std::string pci_bus;            ///< "0000:3b:00.0"
  int multiprocessors = 0;
  int clock_mhz = 0, memory_clock_mhz = 0;  ///< the highest ones; 0: unknown
};

/// "NVIDIA H100 80GB HBM3, 79.6 GiB, compute capability 9.0, 0000:3b:00.0"
[[nodiscard]] std::string text_of(const GpuInfo& gpu);

/// Upper bound of its operations per second for products in a job's `precision`, a multiply-add counting as two, at its
/// highest clock; 0: unknown. fp32: without tensor cores (lanes per multiprocessor: CUDA C++ Programming Guide,
/// "Arithmetic Instructions"). tf32, bf16, fp16: with them, dense, sums in fp32 (NVIDIA's white papers on A100, H100
/// and Blackwell).
[[nodiscard]] double peak_flops(const GpuInfo& gpu, Precision precision = Precision::fp32);

enum class DriverState : std::uint8_t {
  absent,  ///< no libcuda.so.1
  broken,  ///< it is present, but a call to it failed
  no_gpu,  ///< it works, but sees no GPU
  ready,
};

struct DriverFacts {
  DriverState state = DriverState::absent;
  std::string problem;                                  ///< absent, broken: the error
  std::string remedy = "see the output of nvidia-smi";  ///< broken: what to try
  int cuda_version = 0;                                 ///< the latest CUDA that it can run: 13000 is 13.0; 0: unknown
  std::vector<GpuInfo> gpus;  ///< the visible ones (CUDA_VISIBLE_DEVICES), in order of PCI bus
};

/// "13.0"
[[nodiscard]] std::string cuda_version_text(int version);

/// Does not throw. The first call initialises the driver (tenths of a second with GPUs).
[[nodiscard]] DriverFacts ask_driver();

}  // namespace lockstep::device
