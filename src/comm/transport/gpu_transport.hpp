// GpuTransport: moves bytes between GPUs. It is implemented by NcclGroup (in the CUDA module), and for tests by a
// stand-in that sends them over the Communicator. It is not a Communicator itself: its data are on GPUs, and a call
// only enqueues work on a stream.
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

  /// What one rank has and all others get.
  struct Owned {
    int owner = 0;
    float* memory = nullptr;
    std::int64_t count = 0;
  };

  /// Sets the step that errors name. Called between steps, when nothing is under way.
  virtual void enter(std::uint64_t step) = 0;

  /// All messages at once. Between two ranks they have the same order on both sides.
  virtual void send_receive(std::span<const Message> sends, std::span<const Message> receives, Stream stream) = 0;
  /// Gives every rank every owner's slice, in place. `bounds`: slice_bounds() of the bucket.
  virtual void all_gather(float* bucket, std::span<const std::int64_t> bounds, Stream stream) = 0;
  /// Gives every rank what each owner has, in place. All ranks name the same owners and counts, in the same order.
  virtual void broadcast(std::span<const Owned> list, Stream stream) = 0;
  /// Not exact: the association is the library's.
  virtual void all_reduce_sum(float* values, std::int64_t count, Stream stream) = 0;

  /// Throws if an error has been detected meanwhile: a lost peer, a network that is down. For code that waits for a
  /// stream, which might otherwise wait for ever.
  virtual void check(const Operation& operation) = 0;
  /// Aborts everything under way on this rank. Afterwards it can only be destroyed.
  virtual void abort() noexcept = 0;
};

/// Where gradients are reduced: on the host, unless there is a GPU.
struct ReduceDevice {
  device::Gpu* gpu = nullptr;
  std::function<std::unique_ptr<GpuTransport>()> make_transport;  ///< for a GPU; called if there are several ranks
};

/// The module's function that makes transports: GpuTransport*(Communicator&, device::Gpu&, const device::GpuPlace&,
/// std::chrono::milliseconds).
inline constexpr const char* kModuleMakeTransport = "lockstep_cuda_make_transport";
/// The module's function that names their library: void(std::string&).
inline constexpr const char* kModuleTransportLibrary = "lockstep_cuda_transport_library";

/// Over NCCL. Collective, each rank with its own GPU; rank 0's unique id is sent over `ranks`. Throws
/// Error(infrastructure) on all ranks if it fails on one, or is not done by the deadline.
[[nodiscard]] std::unique_ptr<GpuTransport> make_gpu_transport(const device::CudaModule& module, Communicator& ranks,
                                                               device::Gpu& gpu, const device::GpuPlace& place,
                                                               std::chrono::milliseconds timeout);

/// "NCCL 2.28.3". Not part of CudaModule::libraries, because no bit depends on it if sums are exact.
[[nodiscard]] std::string transport_library(const device::CudaModule& module);

}  // namespace lockstep::comm
