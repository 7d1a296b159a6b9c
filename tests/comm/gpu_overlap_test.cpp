// The all-reduce overlaps backward: a bucket's slices are sent, and complete on all ranks, while later kernels have not
// ended.
#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <utility>

#include "comm/reduce/all_reduce_gpu.hpp"
#include "comm/reduce_cases.hpp"
#include "comm/reduce_run.hpp"
#include "cuda/checked_transport.hpp"
#include "device/fake_gpu.hpp"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;
using device::FakeGpu;

/// Records, when a bucket is complete, whether the work that it waited for is done.
class NotingTransport final : public GpuTransport {
 public:
  NotingTransport(Communicator& ranks, FakeGpu& gpu) : transport_(ranks, 60s, touches(gpu)), gpu_(gpu) {}
  void enter(std::uint64_t step) override { transport_.enter(step); }
  void send_receive(std::span<const Message> sends, std::span<const Message> receives, Stream stream) override {
    transport_.send_receive(sends, receives, stream);
  }
  void all_gather(float* bucket, std::span<const std::int64_t> bounds, Stream stream) override {
    transport_.all_gather(bucket, bounds, stream);
    const auto whole = gpu_.make_event();
    gpu_.record(whole, stream);
    const std::lock_guard lock(mutex_);
    done_.push_back(gpu_.done(whole));
  }
  void broadcast(std::span<const Owned> list, Stream stream) override { transport_.broadcast(list, stream); }
  void all_reduce_sum(float* values, std::int64_t count, Stream stream) override {
    transport_.all_reduce_sum(values, count, stream);
  }
  void check(const Operation& operation) override { transport_.check(operation); }
  void abort() noexcept override { transport_.abort(); }

  /// The records of this many buckets since the last call.
  [[nodiscard]] std::vector<bool> wait_for(std::size_t buckets) {
    for (const auto end = Clock::now() + 60s; Clock::now() < end;) {
      {
        const std::lock_guard lock(mutex_);
        if (done_.size() == buckets) return std::exchange(done_, {});
      }
      std::this_thread::sleep_for(1ms);
    }
    ADD_FAILURE() << "the buckets have not come to be whole";
    return {};
  }

 private:
  HostTransport transport_;
  FakeGpu& gpu_;
  std::mutex mutex_;
  std::vector<bool> done_;  ///< by bucket
};

TEST(GpuAllReduce, ABucketDoesNotWaitForLaterKernels) {
  const GradientBuckets buckets = buckets_of({5000, 70, 900}, 4);
  const MicroBatchAssignment assignment = place_micro_batches(std::vector<int>{2, 2});
  run_in_threads(2, [&](Communicator& ranks) {
    FakeGpu gpu;
    const auto worker = gpu.make_stream();
    auto transport = std::make_unique<NotingTransport>(ranks, gpu);
    NotingTransport& noting = *transport;
    GpuAllReduce reducer(ranks, buckets, {.timeout = 60s}, gpu, std::move(transport));
    const auto compute = [&](std::uint64_t step, int bucket) {
      for (const int micro_batch : assignment.micro_batches_of_rank[static_cast<std::size_t>(ranks.rank())]) {
        const auto values = gradient(step, micro_batch, bucket, buckets.at(bucket).elements);
        const GradientBuffer buffer = reducer.buffer(micro_batch, bucket);
        gpu.wait(worker, buffer.free);
        gpu.kernel_writes(worker, device::bytes_of(buffer.memory), values.size() * sizeof(float));
        fill(buffer, values);
        gpu.record(buffer.written, worker);
        reducer.ready(micro_batch, bucket);
      }
    };
    reducer.begin_step(5, assignment);  // the first one allocates
    for (int bucket = 0; bucket < 3; ++bucket) compute(5, bucket);
    reducer.finish();
    EXPECT_EQ(noting.wait_for(3), (std::vector<bool>{true, true, true}));

    reducer.begin_step(6, assignment);
    compute(6, 0);
    compute(6, 1);
    gpu.stall(worker);
    compute(6, 2);
    EXPECT_EQ(noting.wait_for(3), (std::vector<bool>{true, true, false}));
    gpu.resume();
    reducer.finish();
  });
}

}  // namespace
}  // namespace lockstep::comm
