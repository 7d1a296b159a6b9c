// The all-reduce on GPUs: gradients, partial sums and the sum never leave them. It is exact like the all-reduce on
// hosts, with the same tree and the same owners (comm/reduce/all_reduce_cpu.hpp); events take the place of flags in
// shared memory. A bucket passes three streams:
//
//   worker's    kernels write a buffer (after waiting for its event `free`)
//   sums        additions of siblings on this rank (after waiting for `written`)
//   transport   slices to their leaders on the host; the leaders' additions, sent to the owners; the owners' additions;
//               all-gather of the slices
//
// Buckets are enqueued on `transport` in their order on every rank, since libraries like NCCL match messages by order
// alone. A thread of its own enqueues them, so that no worker waits for such a library; the thread that called finish()
// watches for errors until the last bucket is whole.
//
// Streamed buckets are exchanged in each wave of micro-batches (GpuStreamedSums): first all of the first wave, and so
// on; with those of the last wave come the buckets that are exchanged once.
//
// If the ranks divide the parameters, too, these are gathered on the same stream: such gathers have turns at fixed
// places among the exchanges (GpuTurns), so that all ranks still have one order of everything that NCCL does.
//
// Scalars go through the host: they are few, and the host needs them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "comm/reduce/gpu_rounds.hpp"
#include "comm/reduce/gpu_streamed_sums.hpp"
#include "comm/reduce/gradient_reducer.hpp"
#include "comm/reduce/rank_reducer.hpp"
#include "comm/reduce/tree_sums.hpp"
#include "comm/transport/gpu_transport.hpp"
#include "device/gpu/gpu.hpp"
#include "device/gpu/gpu_memory.hpp"

namespace lockstep::comm {

/// Sums of gradients on a GPU: every addition is enqueued on one stream, in the order of the host's calls, and events
/// say when memory may be read and when it may be written again.
class GpuBufferMemory final : public BufferMemory {
 public:
  using Event = device::Gpu::Event;
  using Stream = device::Gpu::Stream;

  /// Additions are enqueued on `stream`. The Gpu must outlive it, and all uses of the sums must have finished before it
  /// is destroyed.
  GpuBufferMemory(device::Gpu& gpu, Stream stream) : gpu_(gpu), stream_(stream) {}

  /// Whoever uses it first waits for its `free`.
  [[nodiscard]] float* allocate(std::int64_t elements) override;
  void add(float* left, float* right, std::int64_t elements) override;
  /// To the host, a sum is done when its additions are on the stream, not when they have run.
  bool takes_more() const override { return false; }

  /// The buffer at this address, which must come from allocate().
  GradientBuffer buffer(float* memory) const;
  /// Additions enqueued from now on wait for the kernels that wrote it.
  void written(float* memory) { gpu_.wait(stream_, buffer(memory).written); }
  Stream stream() const { return stream_; }

 private:
  struct Block {
    device::GpuBlock memory;
    Event free, written;
  };
  device::Gpu& gpu_;
  Stream stream_;
  mutable std::mutex mutex_;
  std::unordered_map<float*, Block> blocks_;
};

/// Messages that have their turns among the exchanges of buckets on the transport's stream. Called by a thread of the
/// reducer.
class GpuTurns {
 public:
  GpuTurns() = default;
  GpuTurns(const GpuTurns&) = delete;
  GpuTurns& operator=(const GpuTurns&) = delete;
  virtual ~GpuTurns() = default;

  /// Whether everything on this rank that the turn waits for is on streams; must not block.
  [[nodiscard]] virtual bool ready(int turn) = 0;
  virtual void enqueue(int turn, GpuTransport& transport, device::Gpu::Stream stream) = 0;
  /// No more turns will be enqueued.
  virtual void failed(std::exception_ptr error) noexcept = 0;
};

class GpuAllReduce final : public RankReducer {
 public:
  using Event = device::Gpu::Event;
  using Stream = device::Gpu::Stream;

  /// `transport`: null for a single rank. The Gpu and the communicator must outlive it.
  GpuAllReduce(Communicator& communicator, GradientBuckets buckets, ReducerOptions options, device::Gpu& gpu,
               std::unique_ptr<GpuTransport> transport);
  GpuAllReduce(const GpuAllReduce&) = delete;
  GpuAllReduce& operator=(const GpuAllReduce&) = delete;
  ~GpuAllReduce() override;

  /// Sets what is called once after an error, before the transport is aborted, which may take long or for ever.
  void before_abort(std::function<void()> call) { before_abort_ = std::move(call); }

  void begin_step(std::uint64_t step, const MicroBatchAssignment& assignment) override;
  [[nodiscard]] GradientBuffer buffer(int micro_batch, int bucket) override;
  void ready(int micro_batch, int bucket) override;
  /// Returns when all work of the step is on streams or, with several ranks, when it has finished.
  void finish() override;
  /// On the GPU, for streams that have waited for whole().
  std::span<const float> reduced(int bucket) const override;
  /// Address of the sum of an element; in a scattered bucket, of the own slice.
  const float* sum_at(int bucket, std::int64_t element) const;
  ReducerStatistics statistics() const override;

  /// After finish() and until the next step: gives every rank what each owner has (GpuTransport::broadcast), after
  /// earlier work of the stream and before later work.
  void broadcast(std::span<const GpuTransport::Owned> list, Stream stream);
  /// The same with messages between some of the ranks (GpuTransport::send_receive).
  void send_receive(std::span<const GpuTransport::Message> sends, std::span<const GpuTransport::Message> receives,
                    Stream stream);
  // Turns of other messages (all_reduce_gpu_turns.cpp). The turns of a step are at the same places on every rank.

  /// To be called once: from now on, a step's buckets wait for begin_turns(). Null: there are no more turns; then it
  /// returns when nothing of them is under way any more, and aborts the transport if they have not all been enqueued.
  void use_turns(GpuTurns* turns);
  /// Begins so many turns. `before`: by exchange of a bucket, ascending, how many of them precede it. Empty: this is
  /// outside of a step, and has an end_turns().
  void begin_turns(int count, std::vector<int> before);
  /// A turn may have become ready.
  void turn_may_be_ready();
  /// Returns when all turns are done.
  void end_turns(const char* name, const char* awaited);
  /// Aborts the transport, once: otherwise work on the GPU would wait for ever, and so would the threads that wait for
  /// it.
  void abort() noexcept;

  /// Waits for work on the GPU that needs other ranks; throws if they or the messages fail, or at the deadline.
  /// `awaited`: what has not come then, for the message.
  void wait_for(Event event, const char* name, const char* awaited);
  /// After finish(): recorded when all of reduced() is written.
  Event whole() const { return whole_; }
  /// Call when everything that reads reduced() is enqueued on this stream: the next step overwrites it only after that.
  void release(Stream stream) { gpu_.record(released_, stream); }

  std::vector<float> fetch(int bucket) const override;

  /// The maximum bytes on the GPU of a rank.
  [[nodiscard]] static std::size_t bytes(const ReducerShare& share);
  /// How many micro-batches it can have if it may take so many bytes more. At least those that it has.
  [[nodiscard]] static int max_micro_batches(const ReducerShare& share, std::size_t more);
  /// Without streamed buckets: with `micro_batches` of the gradient's micro-batches, computed in their order by
  /// `workers` at a time.
  [[nodiscard]] static std::size_t bytes(const GradientBuckets& buckets, int micro_batches, int ranks, int workers);

 private:
  [[nodiscard]] static bool streams_any(const GradientBuckets& buckets, const ReducerOptions& options, int ranks);
  GpuBufferMemory& gpu_memory() const { return static_cast<GpuBufferMemory&>(*buffer_memory_); }
  /// Calls `move` with the transport's stream, between earlier and later work of this stream.
  void move_between(Stream stream, const std::function<void(Stream)>& move);
  void make_plan(const MicroBatchAssignment& assignment);
  void order_exchanges();
  void make_memory();
  /// Whether anything on this rank that has not come is waited for.
  bool lacks_gradients() const;
  /// Returns when memory for a streamed bucket is free.
  void wait_for_room(int micro_batch, int bucket);
  float* root(int number, int bucket) const;
  int number_of(int wave, int bucket) const { return numbers_[wave * bucket_count() + bucket]; }
  void run_transport_thread();
  /// What the transport's thread enqueues next: a turn, or an exchange.
  struct Next {
    bool is_turn = false;
    int number = 0;
  };
  /// None if it has to wait for something on this rank.
  std::optional<Next> next() const;
  bool all_issued() const;
  /// Enqueues an exchange that is complete on this rank on the transport's stream.
  void send(int exchange);
  void send_sums(int bucket);
  void reduce(int bucket);
  void count_traffic(int bucket);
  void wait_until_issued();

  device::Gpu& gpu_;
  std::unique_ptr<GpuTransport> transport_;
  Stream transport_stream_;
  Event whole_, released_, begun_, passed_;
  std::vector<Event> summed_;  ///< by bucket: recorded when this rank's partial sums are written

  MergePlan merge_plan_;
  int own_roots_ = 0;
  std::vector<std::vector<std::int64_t>> bounds_;     ///< by bucket: bounds of its slices
  std::vector<GpuRounds> rounds_;                     ///< by bucket; of streamed ones, only the own slice
  std::unique_ptr<GpuStreamedSums> stream_;           ///< null: no bucket is streamed
  std::vector<GpuStreamedSums::Exchange> exchanges_;  ///< of a step, in order; without waves, one of each bucket
  std::vector<int> numbers_;                          ///< by wave and bucket: in exchanges_; -1: none
  std::vector<PlannedBytes> traffic_;                 ///< by bucket: what this rank sends
  std::vector<std::vector<float*>> roots_;            ///< by bucket, by root
  device::GpuBlock received_;                         ///< receive memory, of one bucket
  std::int64_t received_elements_ = 0;
  std::vector<device::GpuBlock> reduced_;  ///< by bucket; of a scattered one, the own slice

  std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  std::vector<int> missing_;   ///< by exchange: partial sums, or gradients, of this rank
  int next_ = 0;               ///< the next exchange to be put on the transport's stream
  GpuTurns* turns_ = nullptr;  ///< null: there are none
  int next_turn_ = 0, turn_count_ = 0;
  std::vector<int> turns_before_;  ///< by exchange
  bool running_ = false, stop_ = false;
  bool is_sending_ = false;  ///< the thread is enqueuing something
  std::exception_ptr error_;

  ReducerStatistics statistics_;
  int exceptions_ = std::uncaught_exceptions();  ///< when the reducer was made
  std::function<void()> before_abort_;
  std::atomic<bool> aborted_ = false;
  std::thread transport_thread_;
};

}  // namespace lockstep::comm
