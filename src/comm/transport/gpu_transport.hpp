// GpuTransport: what moves bytes between GPUs. NcclGroup (in the CUDA module) does it; a stand-in for tests sends them
// over the Communicator. Not a Communicator itself: what it moves lies on GPUs, and a call only puts work on a stream.
//
// Every rank makes the same calls in the same order.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "device/gpu/cuda_module.hpp"
#include "device/gpu/gpu.hpp"
#include "device/gpu/gpu_place.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::comm {

class GpuTransport {
 public:
  using Stream = device::Gpu::Stream;

  GpuTransport() = default;
  GpuTransport(const GpuTransport&) = delete;
  GpuTransport& operator=(const GpuTransport&) = delete;
  virtual ~GpuTransport() = default;

  struct Message {
    int peer = 0;
    float* memory = nullptr;
    std::int64_t count = 0;
  };

  /// What errors name from here on. Between steps: nothing of one before is under way.
  virtual void enter(std::uint64_t step) = 0;

  /// All of them at once. Between two ranks they are in one order on both sides.
  virtual void send_receive(std::span<const Message> sends, std::span<const Message> receives, Stream stream) = 0;
  /// Gives every rank every owner's slice, in place. `bounds`: slice_bounds() of the bucket.
  virtual void all_gather(float* bucket, std::span<const std::int64_t> bounds, Stream stream) = 0;
  /// Not exact: the association is the library's.
  virtual void all_reduce_sum(float* values, std::int64_t count, Stream stream) = 0;

  /// Throws if it has been found out, meanwhile, that something is wrong: a peer that is gone, a network that is down.
  /// For those who wait for a stream, which would wait for ever.
  virtual void check(const Operation& operation) = 0;
  /// Ends what is under way, on this rank. Afterwards only destruction is allowed.
  virtual void abort() noexcept = 0;
};

/// Where gradients are: on the host, unless there is a GPU.
struct ReduceDevice {
  device::Gpu* gpu = nullptr;
  std::function<std::unique_ptr<GpuTransport>()> make_transport;  ///< of a GPU; called where there are several ranks
};

/// The function of the module that makes them: GpuTransport*(Communicator&, device::Gpu&, const device::GpuPlace&,
/// std::chrono::milliseconds).
inline constexpr const char* kModuleMakeTransport = "lockstep_cuda_make_transport";
/// That which says by what: void(std::string&).
inline constexpr const char* kModuleTransportLibrary = "lockstep_cuda_transport_library";

/// By NCCL. Every rank calls it, each with its own GPU; rank 0's unique id goes over `ranks`. Throws
/// Error(infrastructure) on all of them where it fails on one, or is not done by the deadline.
[[nodiscard]] std::unique_ptr<GpuTransport> make_gpu_transport(const device::CudaModule& module, Communicator& ranks,
                                                               device::Gpu& gpu, const device::GpuPlace& place,
                                                               std::chrono::milliseconds timeout);

/// "NCCL 2.28.3". Not among CudaModule::libraries: where sums are exact no bit depends on it.
[[nodiscard]] std::string transport_library(const device::CudaModule& module);

}  // namespace lockstep::comm
