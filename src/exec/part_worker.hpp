// PartWorker: computes micro-batches of one part of a model (graph/parts.hpp), with several of them between forward and
// backward at a time. Activations come from the ranks that have earlier parts and go to those that have later parts;
// gradients go the other way.
//
// Receives are posted early: those of a forward while the previous task computes, those of a backward as soon as its
// forward is done. A message is waited for only where it is first read, and sent as soon as its content has been made
// (exec/part_steps.hpp). It is sent from the memory in which it was computed, so a micro-batch's memory is reused only
// when its messages have left.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "exec/part_links.hpp"
#include "exec/part_micro_batch.hpp"
#include "exec/part_steps.hpp"
#include "exec/worker.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep::exec {

/// The forward or the backward of a micro-batch.
struct PartTask {
  int micro_batch = 0;
  bool forward = true;
  int wave = 0;  ///< on a GPU, if the part's ranks divide its parameters (exec/gather_layout.hpp)
};

/// By part and micro-batch: the rank that computes it.
using RankOfMicroBatch = std::vector<std::vector<int>>;

/// By part and micro-batch: the numbers (message_numbers) of the messages between the rank's own part and that one;
/// empty where there are none.
struct MessageNumbers {
  std::vector<std::vector<int>> to, from;
};

/// Micro-batches of a worker between forward and backward if the job does not say: 1F1B needs as many as there are
/// parts, and more for a part with fewer ranks than it feeds; with one more, activations travel while the parts
/// compute.
[[nodiscard]] int default_in_flight(const std::vector<std::vector<int>>& ranks_of_part);

/// What is the same for all tasks of a worker in one step.
struct PartCalls {
  std::uint64_t step = 0;
  const RankOfMicroBatch& rank_of_micro_batch;
  const MessageNumbers& numbers;
  const ModelView& model;
  std::function<StepContext(int micro_batch)> context;
  InputSource& source;
  const comm::GradientBuckets* buckets = nullptr;  ///< null: no training
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
  [[nodiscard]] double sum() const { return activations + gradients + sends; }
};

/// Seconds of a worker, and what it has sent to other parts.
struct PartWork {
  double compute = 0, hand_over = 0, inputs = 0;
  PartWaits waits;
  std::uint64_t bytes_sent = 0;
};

class PartWorker {
 public:
  /// The device, and what `setup` refers to, must outlive it. setup.part must not be null.
  PartWorker(const Device& device, const ProgramSetup& setup, int worker, KernelSet kernels);
  ~PartWorker();
  PartWorker(const PartWorker&) = delete;
  PartWorker& operator=(const PartWorker&) = delete;

  /// Calls `done(micro-batch, seconds)` right after a micro-batch's last task: its results are available, and it took
  /// `seconds` to compute.
  void run(const PartCalls& calls, std::span<const PartTask> tasks,
           const std::function<void(int micro_batch, double seconds)>& done);
  /// Computes a micro-batch of zeros that exchanges nothing with other parts; returns its seconds.
  double try_micro_batch(const MicroBatchCall& call);
  /// A result of the micro-batch that done() was last called for, in host memory; null if the program has none.
  [[nodiscard]] const float* result(const Location& location) const;
  /// Number of samples of that micro-batch that count.
  [[nodiscard]] std::int64_t valid() const { return valid_; }
  /// Since the last call.
  [[nodiscard]] PartWork take_work() { return std::exchange(work_, {}); }

 private:
  /// A micro-batch from its first receive until its last message has left.
  struct Flight;

  Flight& flight_of(int micro_batch);
  Flight* free_flight();
  void post_next_receives(const PartCalls& calls, std::span<const PartTask> rest);
  void start(const PartCalls& calls, Flight& flight, int micro_batch);
  void run_tasks(const PartCalls& calls, std::span<const PartTask> tasks,
                 const std::function<void(int micro_batch, double seconds)>& done);
  void forward(const PartCalls& calls, Flight& flight, int wave);
  void backward(const PartCalls& calls, Flight& flight, int wave);
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
  /// The forward or the backward of a micro-batch.
  struct Phase {
    const char* name;   ///< in timelines
    std::size_t first;  ///< instruction
    const std::vector<PartStep>& steps;
    const Awaited& awaited;
    std::vector<std::unique_ptr<Transfer>>& transfers;  ///< to wait for
    FromParts what;                                     ///< what these transfers bring
    std::function<void(const PartStep::Sent&)> send;
  };
  void run_phase(const PartCalls& calls, Flight& flight, const Phase& phase);
  void wait(const PartCalls& calls, const Awaited& what, std::vector<std::unique_ptr<Transfer>>& transfers,
            std::span<const std::size_t> entries, int micro_batch);
  void wait_for_all(const PartCalls& calls, const Awaited& what, std::vector<std::unique_ptr<Transfer>>& transfers,
                    int micro_batch);
  void receive(const PartCalls& calls, FromParts what, Flight& flight);
  void send(const PartCalls& calls, const PartLinks::Link& link, const void* from, Flight& flight);
  /// What instructions have computed, in memory that it can be sent from.
  [[nodiscard]] const void* made(Flight& flight, const Location& location, std::size_t bytes);

  const Graph& graph_;
  const Program& program_;
  const PartOfModel& part_;
  const PartSteps steps_;
  MicroBatchRunner runner_;
  ParameterReader parameters_;
  std::vector<std::unique_ptr<Flight>> flights_;
  const Flight* last_ = nullptr;  ///< the one done() was last called for
  std::int64_t valid_ = 0;
  PartWork work_;
};

}  // namespace lockstep::exec
