// GpuGathers: the parameters that a rank's GPU reads, if the ranks divide them (unsharding and resharding of ZeRO's
// third stage, or fully sharded data parallelism). Each rank keeps its own slices. Units of parameters are gathered
// into slots (step/exec/gather_layout.hpp) on the reducer's stream, while kernels read units that were gathered before;
// a slot is used again when they have read it.
//
// NCCL matches messages by their order alone, while ranks have unequal numbers of micro-batches. So gathers are
// numbered: wave by wave (step/exec/gather_layout.hpp), in a wave use by use.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/reduce/all_reduce_gpu.hpp"
#include "device/gpu/gpu.hpp"
#include "device/gpu/gpu_memory.hpp"
#include "step/exec/gather_layout.hpp"
#include "step/exec/gpu_tensors.hpp"
#include "step/exec/parameter_gathers.hpp"
#include "step/exec/parameters.hpp"

namespace lockstep::exec {

class GpuGathers final : public ParameterGathers, public comm::GpuTurns {
 public:
  using Stream = device::Gpu::Stream;

  /// `own`: this rank's slices of the parameters, and their low-precision copies. All references must outlive it.
  GpuGathers(device::Gpu& gpu, comm::GpuAllReduce& reducer, GpuParameters& own, GatherLayout layout);
  /// Waits until nothing is under way; after an error, aborts what is.
  ~GpuGathers() override;
  GpuGathers(const GpuGathers&) = delete;
  GpuGathers& operator=(const GpuGathers&) = delete;

  /// Bytes on the GPU, with what trial() allocates.
  [[nodiscard]] static std::size_t bytes(const GatherLayout& layout, const Program& program) {
    return layout.bytes(program) + layout.max_area_bytes();
  }

  [[nodiscard]] std::vector<UnitUse> prepare(const Program& program, int workers) override;
  std::size_t slots() const override { return slots_.size(); }
  void begin(Round round, std::vector<int> before) override;
  void end() override;
  std::shared_ptr<const ModelView> trial(const ModelView& model) const override;

  // For a worker, which has one micro-batch of a wave, in the order of the uses.

  const std::vector<UnitUse>& uses() const { return *round_.uses; }
  const GatherWave& wave(int number) const { return round_.waves[number]; }
  /// Returns when the parameters are there; sets their addresses in `view`. Throws if they do not come.
  void acquire(int wave, std::size_t use, Stream stream, ModelView& view);
  /// Call when all that reads them is on the stream.
  void release(int wave, std::size_t use, Stream stream);
  /// After an error: aborts the transport, and returns when nothing runs on the stream any more.
  void abandon(Stream stream) noexcept;
  /// Memory of each slot.
  void add_addresses(std::vector<const void*>& addresses) const;

  // For the reducer's thread.
  [[nodiscard]] bool ready(int turn) override;
  void enqueue(int turn, comm::GpuTransport& transport, Stream stream) override;
  void failed(std::exception_ptr error) noexcept override;

 private:
  struct Slot {
    device::GpuBlock memory;
    std::size_t bytes = 0;
    device::Gpu::Event gathered{};
    std::vector<device::Gpu::Event> read;  ///< by reader of a wave
    // Guarded by the mutex:
    int turn = -1;    ///< whose unit it has, or gets; -1: none of this round
    int readers = 0;  ///< that have released it
  };
  /// From this rank's slices to a slot.
  struct Copy {
    const std::byte* from = nullptr;
    std::size_t offset = 0, bytes = 0;
  };
  void find_copies();
  void make_room(const std::vector<UnitUse>& uses, int workers);
  int turn_of(int number, std::size_t use) const {
    return first_turns_[number] + static_cast<int>(use - wave(number).first);
  }
  int wave_of(int turn) const;
  std::size_t use_of(int turn) const {
    const int number = wave_of(turn);
    return wave(number).first + (turn - first_turns_[number]);
  }
  [[nodiscard]] Slot& slot_of(std::size_t use) { return slots_[use % slots_.size()]; }
  void wait_until_enqueued(int turn);

  device::Gpu& gpu_;
  comm::GpuAllReduce& reducer_;
  GpuParameters& own_;
  GatherLayout layout_;
  std::vector<std::vector<Copy>> copies_;  ///< by unit
  std::vector<Slot> slots_;
  Round round_;
  std::vector<int> first_turns_;  ///< by wave

  std::mutex mutex_;
  std::condition_variable enqueued_changed_;
  int enqueued_ = 0;  ///< turns of this round
  std::exception_ptr error_;
};

/// Null if all parameters are in memory.
[[nodiscard]] inline GpuGathers* gathers_of(const ModelView& model) {
  return static_cast<GpuGathers*>(model.gathers);
}

/// For one worker: holds the units that its current instructions read.
class GatherReader {
 public:
  explicit GatherReader(const Program& program) : begins_(program.instructions.size() + 1), ends_(begins_.size()) {}

  struct Call {
    GpuGathers* gathers = nullptr;  ///< null: all parameters are in memory
    int wave = 0;
    std::uint64_t step = 0;
    TraceRecorder* trace = nullptr;
    int track = 0;
  };
  /// Call before a wave's first instruction.
  void begin(const Call& call, const ModelView& model);
  /// Where kernels read the model, if there are gathers.
  const ModelView& view() const { return view_; }
  /// End of the instructions, from `first` on, that read the same units.
  std::size_t end_of_segment(std::size_t first) const;
  /// Before the first instruction of such a segment is launched, and after its last.
  void before(std::size_t first, device::Gpu::Stream stream);
  void after(std::size_t last, device::Gpu::Stream stream);
  /// Seconds of waiting since begin().
  double seconds() const { return seconds_; }

 private:
  Call call_;
  const std::vector<UnitUse>* uses_ = nullptr;
  std::vector<bool> begins_, ends_;  ///< by instruction: whether a use does
  std::vector<std::size_t> held_;    ///< indices into uses
  std::size_t next_ = 0;
  ModelView view_;
  double seconds_ = 0;
};

}  // namespace lockstep::exec
