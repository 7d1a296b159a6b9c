// Worker: the loop that runs instructions. It computes micro-batches of a model, or of one part of it
// (graph/parts.hpp), and hands over their gradients bucket by bucket. On a CPU a worker is a thread; on a GPU, a stream
// and the thread that fills it (step/exec/micro_batch.hpp).
//
// A whole model's micro-batch is computed in one pass. Of a part, a worker has several micro-batches between forward
// and backward at a time. Activations come from the ranks that have earlier parts and go to those that have later
// parts; gradients go the other way. Receives are posted early: those of a forward while the previous task computes,
// those of a backward as soon as its forward is done. A message is waited for only where it is first read, and sent as
// soon as its content has been made (step/exec/part_steps.hpp). It is sent from the memory in which it was computed, so
// a micro-batch's memory is reused only when its messages have left.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/input_source.hpp"
#include "core/trace.hpp"
#include "lockstep/communicator.hpp"
#include "step/exec/device.hpp"
#include "step/exec/micro_batch.hpp"
#include "step/exec/micro_batch_gradients.hpp"
#include "step/exec/micro_batch_runner.hpp"
#include "step/exec/part_links.hpp"
#include "step/exec/part_steps.hpp"

namespace lockstep::exec {

/// What is computed of a micro-batch at once: of a whole model, or in inference, all; of a part, its forward or its
/// backward.
enum class Pass : std::uint8_t { whole, forward, backward };

struct Task {
  int micro_batch = 0;
  Pass pass = Pass::whole;
  int wave = 0;  ///< on a GPU, if ranks divide parameters (step/exec/gather_layout.hpp)
};

/// What is the same for all tasks of a worker in one step.
struct StepCalls {
  std::uint64_t step = 0;  ///< of the source, of messages and in timelines
  const ModelView& model;
  StepContext context;  ///< its first_position is each micro-batch's own
  InputSource& source;
  const RankOfMicroBatch* rank_of_micro_batch = nullptr;  ///< of a part
  const MessageNumbers* numbers = nullptr;                ///< of a part
  const comm::GradientBuckets* buckets = nullptr;         ///< null: no training
  comm::GradientSink* sink = nullptr;
  float loss_scale = 1;
  TraceRecorder* trace = nullptr;
  int track = 0;
  const std::atomic<bool>* stop = nullptr;           ///< set if another worker of this rank has failed: waits then end
  const std::atomic<bool>* skips_compute = nullptr;  ///< set if results are no longer needed
};

/// Seconds that workers wait for other parts.
struct PartWaits {
  double activations = 0;  ///< in a forward
  double gradients = 0;    ///< in a backward
  double sends = 0;        ///< until what it sends has left
  double sum() const { return activations + gradients + sends; }
};

/// Seconds, and bytes.
struct MicroBatchTimes {
  double compute_seconds = 0;    ///< kernels only
  double data_seconds = 0;       ///< waiting for inputs
  double merge_seconds = 0;      ///< handing over buckets, and waiting for parameters of other hosts or ranks
  PartWaits part_waits;          ///< if the model is cut
  std::uint64_t part_bytes = 0;  ///< activations and their gradients sent to other parts
  MicroBatchTimes& operator+=(const MicroBatchTimes& other);
};

class Worker {
 public:
  /// Called right after a micro-batch's last task: its results are available, and it took `seconds` to compute.
  using Done = std::function<void(int micro_batch, double seconds)>;

  /// The device, and what `setup` refers to, must outlive it. `filler`: see Device::make_micro_batch.
  Worker(const Device& device, const ProgramSetup& setup, int worker, KernelSet kernels,
         const std::shared_ptr<const InputFiller>& filler);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void run(const StepCalls& calls, std::span<const Task> tasks, const Done& done);
  /// Computes a micro-batch that exchanges nothing with other parts; returns its seconds.
  double try_micro_batch(const MicroBatchCall& call);
  /// A result of the micro-batch that done() was last called for, in host memory; null if the program has none.
  const float* result(const Location& location) const;
  /// Number of samples of that micro-batch that count.
  std::int64_t valid() const { return valid_; }
  /// Since the last call.
  [[nodiscard]] MicroBatchTimes take_times() { return std::exchange(times_, {}); }

 private:
  /// A micro-batch from its first receive until its last message has left.
  struct Flight;

  Flight& flight_of(int micro_batch);
  Flight* free_flight();
  void post_next_receives(const StepCalls& calls, std::span<const Task> rest);
  void start(const StepCalls& calls, Flight& flight, int micro_batch);
  void run_tasks(const StepCalls& calls, std::span<const Task> tasks, const Done& done);
  void begin(const StepCalls& calls, Flight& flight);
  void forward(const StepCalls& calls, Flight& flight);
  void backward(const StepCalls& calls, Flight& flight);
  void run_instructions(Flight& flight, std::size_t first, std::size_t last, bool skip = false);
  /// Adds the seconds of `compute`, which runs instructions or waits for them, to the flight.
  template <class Compute>
  void time(Flight& flight, const Compute& compute);
  /// What is waited for: its name in timelines and messages, and where its seconds are added.
  struct Awaited {
    const char* name;
    double PartWaits::*seconds;
  };
  static const Awaited kActivations, kGradients, kSends;
  /// What a pass computes.
  struct Phase {
    const char* name;   ///< in timelines
    std::size_t first;  ///< instruction
    const std::vector<PartStep>& steps;
    const Awaited& awaited;
    std::vector<std::unique_ptr<Transfer>>& transfers;  ///< to wait for
    FromParts what;                                     ///< what these transfers bring
    std::function<void(const PartStep::Sent&)> send;
  };
  void run_phase(const StepCalls& calls, Flight& flight, const Phase& phase);
  void wait(const StepCalls& calls, const Awaited& what, std::vector<std::unique_ptr<Transfer>>& transfers,
            std::span<const std::size_t> entries, int micro_batch);
  void wait_for_all(const StepCalls& calls, const Awaited& what, std::vector<std::unique_ptr<Transfer>>& transfers,
                    int micro_batch);
  void receive(const StepCalls& calls, FromParts what, Flight& flight);
  void send(const StepCalls& calls, const PartLinks::Link& link, const void* from, Flight& flight);
  /// What instructions have computed, in memory that it can be sent from.
  [[nodiscard]] const void* made(Flight& flight, const Location& location, std::size_t bytes);

  const Graph& graph_;
  const Program& program_;
  const PartOfModel* part_;  ///< null: the graph is a whole model
  const PartLinks& links_;
  const std::int64_t samples_;  ///< of a micro-batch
  const PartSteps steps_;
  const std::vector<PartStep> whole_;  ///< all instructions
  MicroBatchRunner runner_;
  std::vector<std::unique_ptr<Flight>> flights_;
  const Flight* last_ = nullptr;  ///< the one done() was last called for
  std::int64_t valid_ = 0;
  MicroBatchTimes times_;
};

}  // namespace lockstep::exec
