// Device: what a rank computes on, its CPU (CpuDevice) or one GPU (GpuDevice). It makes all that differs between the
// two: kernels and what they run on, workers, the memory of a model, the reducer of gradients. So nobody else asks
// which it is.
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
#include "exec/parameters.hpp"
#include "exec/part_links.hpp"
#include "graph/program.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/graph.hpp"
#include "lockstep/op.hpp"

namespace lockstep::comm {
struct ReduceDevice;
}

namespace lockstep::device {
class GpuProfiler;
}

namespace lockstep::exec {

class KernelSet;
class PartShard;
class ShardRunner;
class Worker;
class WorkerStream;

/// Makes a shard's inputs where they are needed, on a GPU, from fewer bytes than they have. Its parts take the place of
/// the inputs in ShardInputs and on the way to the GPU. Const members are called by several threads at once.
class InputFiller {
 public:
  InputFiller() = default;
  InputFiller(const InputFiller&) = delete;
  InputFiller& operator=(const InputFiller&) = delete;
  virtual ~InputFiller() = default;
  /// Bytes of each part, the same for every shard.
  [[nodiscard]] virtual std::span<const std::size_t> parts() const = 0;
  /// Launches kernels that overwrite `inputs`, one per Graph::inputs. Both are on the GPU.
  virtual void fill(device::Stream stream, std::span<const std::byte* const> parts,
                    std::span<std::byte* const> inputs) const = 0;
};

/// A program that is to be run, and by how many workers.
struct ProgramSetup {
  const Graph& graph;  ///< as the device computes it: lowered
  const Program& program;
  int workers = 1;
  const PartOfModel* part = nullptr;  ///< null: the graph is a whole model
  [[nodiscard]] std::int64_t shard_samples() const {
    if (part != nullptr) return part->samples;
    return graph.inputs.empty() ? 0 : graph.at(graph.inputs.front()).spec.shape.front();
  }
};

/// A kernel that is to be made for a worker.
struct KernelSetup {
  const Node& node;
  KernelRequest request;
  std::string layer;       ///< "conv 'stem'"
  std::string algorithms;  ///< of a library, that are to be taken; empty: any
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

  [[nodiscard]] const device::DeviceInfo& info() const { return info_; }
  [[nodiscard]] DeviceKind kind() const { return info_.kind; }

  // What an executor is made of.

  /// The graph as it is computed here. `passes`: with those that rewrite it (graph/lowering).
  [[nodiscard]] virtual Graph lower(const Graph& graph, bool passes) const = 0;
  /// Throws Error(configuration), which names the layer, where its op has no kernel for this device.
  [[nodiscard]] virtual std::unique_ptr<Kernel> make_kernel(const KernelSetup& setup) const = 0;
  /// That of a worker. The programs of a GPU's worker share one, so that their activations take memory once.
  [[nodiscard]] virtual std::shared_ptr<WorkerStream> stream(int worker) const = 0;
  /// `filler`: of a GPU, what makes its inputs; null: they are copied.
  [[nodiscard]] virtual std::unique_ptr<Worker> make_worker(const ProgramSetup& setup, int worker, KernelSet kernels,
                                                            std::shared_ptr<const InputFiller> filler) const = 0;
  /// Memory of a shard of a part that a worker computes by `runner`, which outlives it.
  [[nodiscard]] virtual std::unique_ptr<PartShard> make_part_shard(const ProgramSetup& setup, int worker,
                                                                   ShardRunner& runner) const = 0;
  /// The model where kernels of this device can read it, with the values that it has on the host now. Both blocks
  /// outlive what is returned. Throws Error(configuration) where it does not fit beside what the program needs.
  [[nodiscard]] virtual std::shared_ptr<const ModelView> place_model(const ProgramSetup& setup,
                                                                     const TensorBlock& parameters,
                                                                     const TensorBlock& states) const = 0;

  /// Of gradients that workers of this device write. The communicator outlives it.
  [[nodiscard]] virtual std::unique_ptr<comm::GradientReducer> make_reducer(Communicator& communicator,
                                                                            comm::GradientBuckets buckets,
                                                                            comm::ReducerOptions options) const = 0;
  /// Memory for gradients that nobody reads.
  [[nodiscard]] virtual ScratchBuffer make_scratch(std::int64_t elements) const = 0;

  // What others ask of it.

  /// For people: "NVIDIA H100 80GB HBM3".
  [[nodiscard]] virtual std::string name() const { return info_.model; }
  /// Where the job does not say how many; `cores`: this rank's.
  [[nodiscard]] virtual int default_workers(int cores) const = 0;
  /// Of all workers together, in the job's precision; 0: not known.
  [[nodiscard]] virtual double peak_flops(int workers) const = 0;
  /// What the bits of its kernels depend on, beside their code: "oneDNN 2.6.3".
  [[nodiscard]] virtual std::string fingerprint() const { return info_.libraries; }
  /// Whether libraries choose algorithms when kernels are made, so that ranks have to agree on them.
  [[nodiscard]] virtual bool chooses_algorithms() const { return false; }
  /// Whether a model is in memory of this process, which its limits bound, and which ranks of a host can share.
  [[nodiscard]] virtual bool uses_host_memory() const { return true; }
  /// Whether there is memory for more than the run: that of GPUs is planned to the last MiB.
  [[nodiscard]] virtual bool has_memory_to_spare() const { return true; }
  /// Whether make_reducer() wants GradientBuckets::spread_owners.
  [[nodiscard]] virtual bool spreads_owners() const { return true; }
  /// Of a GPU: "0000:3b:00.0".
  [[nodiscard]] virtual std::string pci_bus() const { return ""; }
  /// Where gradients are, for benches; `timeout`: of ranks that wait for each other.
  [[nodiscard]] virtual comm::ReduceDevice reduce_device(Communicator& communicator,
                                                         std::chrono::milliseconds timeout) const = 0;
  /// Whose own all-reduce takes them there.
  [[nodiscard]] virtual std::string all_reduce_library() const = 0;
  /// Records what the host does not see; null: there is nothing.
  [[nodiscard]] virtual std::shared_ptr<device::GpuProfiler> profiler() const { return nullptr; }

 protected:
  explicit Device(device::DeviceInfo info) : info_(std::move(info)) {}
  device::DeviceInfo info_;
};

}  // namespace lockstep::exec
