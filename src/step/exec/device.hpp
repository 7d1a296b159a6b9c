// Device: what a rank computes on, its CPU (CpuDevice) or one GPU (GpuDevice). It makes everything that differs between
// the two: kernels and what they run on, workers, the memory of a model, the reducer of gradients. So no other code
// asks which one it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/reduce/gradient_buckets.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "device/device.hpp"
#include "device/stream.hpp"
#include "graph/program.hpp"
#include "lockstep/choices.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/op.hpp"
#include "step/exec/parameters.hpp"
#include "step/exec/part_links.hpp"

namespace lockstep::comm {
struct ReduceDevice;
}

namespace lockstep::device {
class GpuProfiler;
}

namespace lockstep::exec {

class KernelSet;
class MicroBatch;
class MicroBatchRunner;
class WorkerStream;

/// Prepares a micro-batch's inputs on a GPU from fewer bytes than they have. Its parts replace the inputs in
/// MicroBatchInputs and in the transfer to the GPU. Const members are thread-safe.
class InputFiller {
 public:
  InputFiller() = default;
  InputFiller(const InputFiller&) = delete;
  InputFiller& operator=(const InputFiller&) = delete;
  virtual ~InputFiller() = default;
  /// Bytes of each part, the same for every micro-batch.
  virtual std::span<const std::size_t> parts() const = 0;
  /// Launches kernels that overwrite `inputs`, one per Graph::inputs. Both are on the GPU.
  virtual void fill(device::Stream stream, std::span<const std::byte* const> parts,
                    std::span<std::byte* const> inputs) const = 0;
};

/// Bytes of each of MicroBatchInputs::tensors. `filler`: null if the inputs are copied.
[[nodiscard]] inline std::vector<std::size_t> tensor_bytes(const Graph& graph, const InputFiller* filler) {
  if (filler != nullptr) return {filler->parts().begin(), filler->parts().end()};
  std::vector<std::size_t> bytes;
  for (const ValueId id : graph.inputs) bytes.push_back(graph.at(id).spec.bytes());
  return bytes;
}

/// A program to be run, and by how many workers.
struct ProgramSetup {
  const Graph& graph;  ///< as the device computes it, i.e. lowered
  const Program& program;
  int workers = 1;
  const PartOfModel* part = nullptr;  ///< null: the graph is a whole model
  std::int64_t micro_batch_samples() const {
    if (part != nullptr) return part->samples;
    return graph.inputs.empty() ? 0 : graph.at(graph.inputs.front()).spec.shape.front();
  }
  /// With other parts; of a whole model, none.
  const PartLinks& links() const {
    static const PartLinks none;
    return part == nullptr ? none : part->links;
  }
};

/// A kernel to be made for a worker.
struct KernelSetup {
  const Node& node;
  KernelRequest request;
  std::string layer;       ///< "conv 'stem'"
  std::string algorithms;  ///< library algorithms to use; empty: any
  std::shared_ptr<WorkerStream> stream;
};

struct ScratchBuffer {
  comm::GradientBuffer buffer;
  std::shared_ptr<void> memory;  ///< owns it
};

class Device {
 public:
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  const device::DeviceInfo& info() const { return info_; }
  DeviceKind kind() const { return info_.kind; }

  // What executors need.

  /// The graph as this device computes it. `passes`: apply the passes that rewrite it (graph/lowering).
  virtual Graph lower(const Graph& graph, bool passes) const = 0;
  /// Throws Error(configuration) that names the layer if its op has no kernel for this device.
  virtual std::unique_ptr<Kernel> make_kernel(const KernelSetup& setup) const = 0;
  /// The stream of a worker. All programs of a GPU worker share one, so that their activations share memory.
  virtual std::shared_ptr<WorkerStream> stream(int worker) const = 0;
  /// For micro-batches that a worker computes with `runner`, one at a time; that must outlive it. `filler`: prepares
  /// the inputs on a GPU; null: they are copied.
  virtual std::unique_ptr<MicroBatch> make_micro_batch(const ProgramSetup& setup, int worker, MicroBatchRunner& runner,
                                                       std::shared_ptr<const InputFiller> filler) const = 0;
  /// The model in memory that kernels of this device can read, with its current values on the host. Both blocks must
  /// outlive the result. Throws Error(configuration) if it does not fit beside what the program needs.
  virtual std::shared_ptr<const ModelView> place_model(const ProgramSetup& setup, const TensorBlock& parameters,
                                                       const TensorBlock& states) const = 0;

  /// Reduces gradients that workers of this device write. The communicator must outlive it.
  virtual std::unique_ptr<comm::GradientReducer> make_reducer(Communicator& communicator, comm::GradientBuckets buckets,
                                                              comm::ReducerOptions options) const = 0;
  /// Memory for gradients that are discarded.
  virtual ScratchBuffer make_scratch(std::int64_t elements) const = 0;

  // What other code asks of it.

  /// For people: "NVIDIA H100 80GB HBM3".
  virtual std::string name() const { return info_.model; }
  /// Used if the job does not set it; `cores`: this rank's.
  virtual int default_workers(int cores) const = 0;
  /// FLOP/s of all workers together, in the job's precision; 0: unknown.
  virtual double peak_flops(int workers) const = 0;
  /// What the bits of its kernels depend on, besides their code: "oneDNN 2.6.3".
  virtual std::string fingerprint() const { return info_.libraries; }
  /// Whether libraries choose algorithms when kernels are made, so that ranks must agree on them.
  virtual bool chooses_algorithms() const { return false; }
  /// Whether models are in this process's memory, where its limits apply, and which ranks of a host can share.
  virtual bool uses_host_memory() const { return true; }
  /// Whether there is memory left beside the run's; GPU memory is planned to the last MiB.
  virtual bool has_memory_to_spare() const { return true; }
  /// Whether make_reducer() needs GradientBuckets::spread_owners; else equal slices are best for it.
  virtual bool spreads_owners() const { return true; }
  /// For a GPU: "0000:3b:00.0".
  virtual std::string pci_bus() const { return ""; }
  /// Where gradients are, for benchmarks; `timeout`: for ranks that wait for each other.
  virtual comm::ReduceDevice reduce_device(Communicator& communicator, std::chrono::milliseconds timeout) const = 0;
  /// The library with an all-reduce for gradients on this device.
  virtual std::string all_reduce_library() const = 0;
  /// Records what the host cannot see; null: nothing.
  virtual std::shared_ptr<device::GpuProfiler> profiler() const { return nullptr; }

 protected:
  explicit Device(device::DeviceInfo info) : info_(std::move(info)) {}
  device::DeviceInfo info_;
};

}  // namespace lockstep::exec
