// Turns among the buckets: whatever becomes ready first on a rank, all ranks enqueue the same in the same order.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <string>

#include "comm/reduce/all_reduce_gpu.hpp"
#include "comm/reduce_cases.hpp"
#include "comm/reduce_run.hpp"
#include "cuda/checked_transport.hpp"
#include "device/fake_gpu.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;
using device::FakeGpu;

/// Notes a letter for each bucket ("b") and turn ("t").
class OrderedTransport final : public GpuTransport {
 public:
  OrderedTransport(Communicator& ranks, FakeGpu& gpu, std::string& order)
      : transport_(ranks, 60s, touches(gpu)), order_(order) {}
  void enter(std::uint64_t step) override { transport_.enter(step); }
  void send_receive(std::span<const Message> sends, std::span<const Message> receives, Stream stream) override {
    transport_.send_receive(sends, receives, stream);
  }
  void all_gather(float* bucket, std::span<const std::int64_t> bounds, Stream stream) override {
    transport_.all_gather(bucket, bounds, stream);
    order_ += 'b';
  }
  void broadcast(std::span<const Owned> list, Stream stream) override {
    transport_.broadcast(list, stream);
    order_ += 't';
  }
  void all_reduce_sum(float* values, std::int64_t count, Stream stream) override {
    transport_.all_reduce_sum(values, count, stream);
  }
  void check(const Operation& operation) override { transport_.check(operation); }
  void abort() noexcept override { transport_.abort(); }

 private:
  HostTransport transport_;
  std::string& order_;
};

/// Each turn broadcasts a number of rank 0.
class Numbers final : public GpuTurns {
 public:
  Numbers(FakeGpu& gpu, bool fails = false) : fails_(fails), block_(gpu, sizeof(float)) {}
  bool ready(int turn) override { return turn < allowed; }
  void enqueue(int turn, GpuTransport& transport, device::Gpu::Stream stream) override {
    if (fails_ && turn == 1) throw Error(ExitCode::infrastructure, "a turn fails");
    const GpuTransport::Owned number{0, block_.as<float>(), 1};
    transport.broadcast(std::span(&number, 1), stream);
  }
  void failed(std::exception_ptr /*error*/) noexcept override { has_failed = true; }

  std::atomic<int> allowed = 0;
  std::atomic<bool> has_failed = false;

 private:
  bool fails_;
  device::GpuBlock block_;
};

const GradientBuckets kTurnBuckets = buckets_of({5000, 70, 900}, 2);

void compute(GpuAllReduce& reducer, FakeGpu& gpu, device::Gpu::Stream worker, int micro_batch, int bucket) {
  const auto values = gradient(5, micro_batch, bucket, kTurnBuckets.at(bucket).elements);
  const GradientBuffer buffer = reducer.buffer(micro_batch, bucket);
  gpu.wait(worker, buffer.free);
  gpu.kernel_writes(worker, device::bytes_of(buffer.memory), values.size() * sizeof(float));
  fill(buffer, values);
  gpu.record(buffer.written, worker);
  reducer.ready(micro_batch, bucket);
}

TEST(GpuTurns, HaveOneOrderOnAllRanks) {
  const MicroBatchAssignment assignment = place_micro_batches(std::vector<int>{1, 1});
  run_in_threads(2, [&](Communicator& ranks) {
    FakeGpu gpu;
    const auto worker = gpu.make_stream();
    std::string order;
    GpuAllReduce reducer(ranks, kTurnBuckets, {.timeout = 60s}, gpu,
                         std::make_unique<OrderedTransport>(ranks, gpu, order));
    Numbers numbers(gpu);
    reducer.use_turns(&numbers);
    reducer.begin_step(5, assignment);
    reducer.begin_turns(4, {1, 3, 3});
    const auto allow = [&](int turns) {
      numbers.allowed = turns;
      reducer.turn_may_be_ready();
    };
    if (ranks.rank() == 0) allow(4);  // before any bucket; rank 1: after all of them
    for (int bucket = 0; bucket < 3; ++bucket) compute(reducer, gpu, worker, ranks.rank(), bucket);
    if (ranks.rank() == 1) {
      for (int turns = 1; turns <= 4; ++turns) allow(turns);
    }
    reducer.finish();
    EXPECT_EQ(order, "tbttbbt");
    order.clear();
    reducer.begin_turns(3, {});
    reducer.end_turns("turns", "numbers");
    EXPECT_EQ(order, "ttt");
    reducer.use_turns(nullptr);
    EXPECT_FALSE(numbers.has_failed);
  });
}

TEST(GpuTurns, AFailureEndsTheStep) {
  std::string message;
  const auto body = [&](Communicator& ranks) {
    FakeGpu gpu;
    std::string order;
    GpuAllReduce reducer(ranks, kTurnBuckets, {.timeout = 60s}, gpu,
                         std::make_unique<OrderedTransport>(ranks, gpu, order));
    Numbers numbers(gpu, ranks.rank() == 0);
    numbers.allowed = 3;
    reducer.use_turns(&numbers);
    try {
      reducer.begin_turns(3, {});
      reducer.end_turns("turns", "numbers");
    } catch (const Error& error) {
      if (ranks.rank() == 0) {
        message = error.what();
        EXPECT_TRUE(numbers.has_failed);
      }
      reducer.use_turns(nullptr);
      throw;
    }
  };
  EXPECT_THROW(run_in_threads(2, body), Error);
  EXPECT_EQ(message, "a turn fails");
}

}  // namespace
}  // namespace lockstep::comm
