// The all-reduce on GPUs: gradients, partial sums and the sum never leave them. Exact as the all-reduce on hosts is, by
// the same tree and the same owners (comm/reduce/all_reduce_cpu.hpp); what was a flag in shared memory is an event
// here.
//
//   worker's stream  kernels write a buffer                                                 (waits for the buffer's
//   `free`) sums             additions of siblings on this rank                                   (waits for `written`)
//   transport        bucket by bucket: slices to their leaders on the host, the leaders' additions, to their owners,
//                    the owners' additions, everyone gets every slice
//
// Buckets go to `transport` in their order, on every rank, since libraries like NCCL match messages by order alone. A
// thread puts them there, so that no worker waits for such a library; the thread that called finish() watches for what
// went wrong until the last bucket is whole.
//
// Scalars go over the host: they are few, and the host wants them.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "comm/reduce/gpu_rounds.hpp"
#include "comm/reduce/rank_reducer.hpp"
#include "comm/reduce/tree_sums.hpp"
#include "comm/transport/gpu_transport.hpp"
#include "device/gpu/gpu.hpp"
#include "device/gpu/gpu_memory.hpp"

namespace lockstep::comm {

/// Sums of gradients on a GPU: every addition is enqueued on one stream, in the order in which the host asks for it,
/// and events say when memory may be read and when it may be written again.
class GpuBufferMemory final : public BufferMemory {
 public:
  using Event = device::Gpu::Event;
  using Stream = device::Gpu::Stream;

  /// Additions go to `stream`. The Gpu outlives it; what uses the sums is done before it ends.
  GpuBufferMemory(device::Gpu& gpu, Stream stream) : gpu_(gpu), stream_(stream) {}

  [[nodiscard]] float* allocate(std::int64_t elements) override;
  void add(float* left, float* right, std::int64_t elements) override;
  /// A sum is done for the host when its additions are on the stream, not when they have run.
  [[nodiscard]] bool takes_more() const override { return false; }

  /// The buffer at this memory, which is of allocate().
  [[nodiscard]] GradientBuffer buffer(float* memory) const;
  /// What is added to it from now on comes after its kernels.
  void written(float* memory) { gpu_.wait(stream_, buffer(memory).written); }
  [[nodiscard]] Stream stream() const { return stream_; }

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

class GpuAllReduce final : public RankReducer {
 public:
  using Event = device::Gpu::Event;
  using Stream = device::Gpu::Stream;

  /// `transport`: null for a single rank. The Gpu and the communicator outlive it.
  GpuAllReduce(Communicator& communicator, GradientBuckets buckets, ReducerOptions options, device::Gpu& gpu,
               std::unique_ptr<GpuTransport> transport);
  GpuAllReduce(const GpuAllReduce&) = delete;
  GpuAllReduce& operator=(const GpuAllReduce&) = delete;
  ~GpuAllReduce() override;

  /// What is called once after an error, before the transport is aborted, which may take long, or for ever.
  void before_abort(std::function<void()> call) { before_abort_ = std::move(call); }

  void begin_step(std::uint64_t step, const ShardAssignment& assignment) override;
  [[nodiscard]] GradientBuffer buffer(int shard, int bucket) override;
  void ready(int shard, int bucket) override;
  /// Returns when all work of the step is on streams; with several ranks, when it is done.
  void finish() override;
  /// On the GPU, for streams that have waited for whole().
  [[nodiscard]] std::span<const float> reduced(int bucket) const override;
  [[nodiscard]] ReducerStatistics statistics() const override;

  /// After finish(): all of reduced() is there.
  [[nodiscard]] Event whole() const { return whole_; }
  /// What reads reduced() has been enqueued on this stream: the next step may write it after that.
  void release(Stream stream) { gpu_.record(released_, stream); }

  [[nodiscard]] std::vector<float> fetch(int bucket) const override;

  /// The bytes on the GPU, at most, of a rank with `shards` of the gradient's shards, computed by `workers` at a time
  /// in their order.
  [[nodiscard]] static std::size_t bytes(const GradientBuckets& buckets, int shards, int ranks, int workers);

 private:
  void make_plan(const ShardAssignment& assignment);
  void make_memory();
  [[nodiscard]] float* root(int number, int bucket) const;
  void run_transport_thread();
  /// Ends the transport, once: otherwise what is on the GPU would wait for ever, and so would whoever waits for the
  /// GPU.
  void abort() noexcept;
  /// Puts a bucket that is complete on this rank on the transport's stream.
  void send(int bucket);
  void reduce(int bucket);
  void count_traffic(int bucket);
  void wait_until_issued();
  void wait_until_whole();

  device::Gpu& gpu_;
  std::unique_ptr<GpuTransport> transport_;
  Stream transport_stream_;
  Event whole_, released_, begun_;
  std::vector<Event> summed_;  ///< by bucket: this rank's partial sums are there

  MergePlan merge_plan_;
  int own_roots_ = 0;
  std::vector<std::vector<std::int64_t>> bounds_;  ///< by bucket: slices
  std::vector<GpuRounds> rounds_;                  ///< by bucket
  std::vector<PlannedBytes> traffic_;              ///< by bucket: what this rank sends
  std::vector<std::vector<float*>> roots_;         ///< by bucket, by root
  device::GpuBlock received_;                      ///< of one bucket
  std::int64_t received_elements_ = 0;
  std::vector<device::GpuBlock> reduced_;  ///< by bucket

  std::mutex mutex_;  ///< of what follows
  std::condition_variable changed_;
  std::vector<int> roots_left_;  ///< by bucket
  int next_ = 0;                 ///< the bucket to be put on the transport's stream
  bool running_ = false, stop_ = false;
  std::exception_ptr error_;

  ReducerStatistics statistics_;
  int exceptions_ = std::uncaught_exceptions();  ///< when it was made
  std::function<void()> before_abort_;
  bool aborted_ = false;
  std::thread transport_thread_;
};

}  // namespace lockstep::comm
