// ShardWorker: computes shards, one at a time. A worker of the CPU is a thread (CpuWorker), one of a GPU a stream and
// the thread that fills it (GpuWorker).
#pragma once

#include <span>

#include "comm/reduce/gradient_reducer.hpp"
#include "core/trace.hpp"
#include "exec/gradient_layout.hpp"
#include "exec/input_source.hpp"
#include "graph/program.hpp"
#include "lockstep/op.hpp"

namespace lockstep::exec {

/// Who takes a shard's gradients, bucket by bucket: buffer(), then ready(), once each.
class BucketSink {
 public:
  virtual ~BucketSink() = default;
  [[nodiscard]] virtual comm::GradientBuffer buffer(int bucket) = 0;  ///< where the worker computes
  virtual void ready(int bucket) = 0;
};

struct ShardCall {
  const ShardInputs& inputs;                   ///< the host's memory
  std::span<const float* const> parameters;    ///< per Graph::parameters, where the worker's kernels can read them
  std::span<const void* const> low_precision;  ///< of a GPU: ShardBinding::low_precision
  std::span<const float* const> states;
  device::Gpu::Event parameters_there{};  ///< on a GPU: when both may be read
  const StepContext& step;
  const GradientLayout* layout = nullptr;  ///< of training
  BucketSink* sink = nullptr;              ///< of training
  float loss_scale = 1;                    ///< of training
  double* kernel_seconds = nullptr;        ///< seconds inside kernels are added, where the worker knows them
  TraceRanges* ranges = nullptr;           ///< who hears of each op; null: nobody
};

class ShardWorker {
 public:
  ShardWorker() = default;
  ShardWorker(const ShardWorker&) = delete;
  ShardWorker& operator=(const ShardWorker&) = delete;
  virtual ~ShardWorker() = default;

  /// Returns when the shard's results are there and its buckets are handed over.
  virtual void run(const ShardCall& call) = 0;
  /// A result of the last shard, in the host's memory; null where the program has none.
  [[nodiscard]] virtual const float* result(const Location& location) const = 0;
};

}  // namespace lockstep::exec
