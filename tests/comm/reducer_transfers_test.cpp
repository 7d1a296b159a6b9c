// When a step is finished, no message of it can ring a doorbell any more: the next step may map it elsewhere.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "comm/reduce_cases.hpp"
#include "comm/transport/thread_communicator.hpp"
#include "comm/transport/topology.hpp"

namespace lockstep::comm {
namespace {

class CountedTransfer final : public Transfer {
 public:
  CountedTransfer(std::unique_ptr<Transfer> transfer, std::atomic<int>& count)
      : transfer_(std::move(transfer)), count_(count) {
    ++count_;
  }
  ~CountedTransfer() override { --count_; }
  CountedTransfer(const CountedTransfer&) = delete;
  CountedTransfer& operator=(const CountedTransfer&) = delete;
  [[nodiscard]] bool done() override { return transfer_->done(); }
  void wait(const Operation& operation) override { transfer_->wait(operation); }

 private:
  std::unique_ptr<Transfer> transfer_;
  std::atomic<int>& count_;
};

/// Counts the receives that notify somebody and have not been destroyed.
class CountingCommunicator final : public ThreadCommunicator {
 public:
  using ThreadCommunicator::ThreadCommunicator;
  std::unique_ptr<Transfer> receive(std::span<std::byte> bytes, int from, int tag,
                                    std::function<void()> notify) override {
    const bool notifies = static_cast<bool>(notify);
    auto transfer = ThreadCommunicator::receive(bytes, from, tag, std::move(notify));
    if (!notifies) return transfer;
    ++received;
    return std::make_unique<CountedTransfer>(std::move(transfer), open);
  }
  std::atomic<int> open{0}, received{0};
};

TEST(CpuAllReduce, AFinishedStepHasNoNotificationsLeft) {
  ThreadWorld world(make_topology({"a", "a", "b"}));
  run_ranks(world, {0, 1, 2}, [&](int rank) {
    CountingCommunicator communicator(world, rank);
    const std::vector<std::int64_t> tensors = {50'000, 7}, others = {3'000};
    const GradientBuckets buckets{{bucket_of(tensors), bucket_of(others)}, 8};
    const auto reducer = make_reducer(communicator, buckets);
    for (std::uint64_t step = 1; step <= 3; ++step) {
      const std::vector<int> counts = step == 1 ? std::vector<int>{4, 2, 2} : std::vector<int>{1, 0, 7};
      const auto assignment = place_micro_batches(counts);
      reducer->begin_step(step, assignment);
      for (const int micro_batch : assignment.micro_batches_of_rank[static_cast<std::size_t>(rank)]) {
        for (const int bucket : {1, 0}) {
          fill(reducer->buffer(micro_batch, bucket), gradient(step, micro_batch, bucket, buckets.at(bucket).elements));
          reducer->ready(micro_batch, bucket);
        }
      }
      reducer->finish();
      EXPECT_EQ(communicator.open, 0) << "step " << step;
    }
    EXPECT_GT(communicator.received, 0);
  });
}

}  // namespace
}  // namespace lockstep::comm
