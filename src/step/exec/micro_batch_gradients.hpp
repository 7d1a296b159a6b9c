// MicroBatchGradients: moves a micro-batch's gradients from a program to the reducer, bucket by bucket; and which
// buckets a program's gradients are in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/reduce/gradient_buckets.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "core/input_source.hpp"
#include "core/trace.hpp"
#include "graph/program.hpp"
#include "lockstep/op.hpp"
#include "step/exec/micro_batch_runner.hpp"
#include "step/exec/parameters.hpp"

namespace lockstep::exec {

/// Where the gradients of a training micro-batch go.
struct GradientTarget {
  comm::GradientSink& sink;
  const comm::GradientBuckets& buckets;
  int micro_batch = 0;
  float loss_scale = 1;  ///< a power of two; see Step
};

/// A micro-batch to compute.
struct MicroBatchCall {
  const MicroBatchInputs& inputs;  ///< in the host's memory
  const ModelView& model;
  const StepContext& context;
  const GradientTarget* gradients = nullptr;  ///< null: no training
  TraceRecorder* trace = nullptr;             ///< where spans are recorded; null: nowhere
  int track = 0;                              ///< of the timeline
};

/// A bucket is opened when its first slot is about to be
/// written, and handed over when its last one has been. A worker reuses it from micro-batch to micro-batch, so that a
/// step allocates nothing.
class MicroBatchGradients {
 public:
  explicit MicroBatchGradients(const Program& program) : program_(program), slots_(program.slots.size()) {}

  /// Begins a micro-batch; the call must live until it is computed.
  void begin(const MicroBatchCall& call);
  /// Per Program::slots; those of open buckets are set.
  std::span<const SlotMemory> slots() const { return slots_; }
  /// The buckets that instructions may currently write.
  std::span<const comm::GradientBuffer> open_buckets() const {
    return std::span(buffers_).subspan(closed_, buffers_.size() - closed_);
  }
  /// End of the instructions, from `first` on, up to the last one of the next bucket; the program's end if no bucket is
  /// left.
  std::size_t end_of_segment(std::size_t first) const;
  /// Before instruction i: opened(buffer) for each bucket that begins with it.
  template <class Opened>
  void before(std::size_t i, const Opened& opened) {
    while (next_begins_with(i)) opened(open());
  }
  /// After instruction i: closing(buffer) for each bucket that ends with it, before the bucket is handed over.
  template <class Closing>
  void after(std::size_t i, const Closing& closing) {
    while (next_ends_with(i)) {
      closing(buffers_[closed_]);
      hand_over();
    }
  }
  /// Seconds spent handing over since begin().
  double seconds() const { return seconds_; }

 private:
  bool next_begins_with(std::size_t instruction) const;
  bool next_ends_with(std::size_t instruction) const;
  const comm::GradientBuffer& open();
  void hand_over();

  const Program& program_;
  const MicroBatchCall* call_ = nullptr;
  std::vector<SlotMemory> slots_;
  std::vector<comm::GradientBuffer> buffers_;  ///< of the buckets opened so far
  std::size_t closed_ = 0;
  double seconds_ = 0;
};

/// The buckets of a program's slots. `scattered`: only the owner of a slice updates its weights; then all uses of a
/// weight have the same owners. `shared`: numbers of parameters that are excepted, because other parts of the model
/// need the sum of their gradients, too. `reordered`: by parameter, as stored_in_another_order(); such a weight has one
/// owner, because a run of its elements there is no run of the model's. `equal_slices`: ranks whose slices of gathered
/// buckets are to be equal; 0: they need not be.
[[nodiscard]] comm::GradientBuckets gradient_buckets(const Program& program, std::int64_t bucket_bytes,
                                                     std::int64_t micro_batches, bool scattered = false,
                                                     std::span<const std::size_t> shared = {},
                                                     const std::vector<bool>& reordered = {}, int equal_slices = 0);

/// The most elements in buckets that a micro-batch has open at a time, between GradientSink's buffer() and ready().
[[nodiscard]] std::int64_t max_open_elements(const Program& program, const comm::GradientBuckets& buckets);

/// Floats that a worker needs for gradients while it tries micro-batches (Executor::try_micro_batches).
[[nodiscard]] std::int64_t scratch_elements(const Program& program, const comm::GradientBuckets& buckets);

}  // namespace lockstep::exec
