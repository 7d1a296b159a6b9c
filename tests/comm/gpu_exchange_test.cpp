// The exchange on GPUs: the sums' bits, and every access in order, on fakes that check it.
#include "comm/gpu_exchange.hpp"

#include <gtest/gtest.h>

#include "backend/fake_gpu.hpp"
#include "comm/exchange_run.hpp"
#include "cuda/checked_messages.hpp"
#include "lockstep/error.hpp"
#include "seeds.hpp"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;
using backend::FakeGpu;

constexpr ExchangeOptions kOptions{.timeout = 60s};
constexpr unsigned kSeeds = 25;

using backend::bytes_of;

std::unique_ptr<GpuMessages> checked_messages(Communicator& communicator, FakeGpu& gpu) {
  if (communicator.size() == 1) return nullptr;
  return std::make_unique<HostMessages>(communicator, 60s, touches(gpu));
}

/// A rank on a fake: workers write leaves on streams of their own, and sums are read on another.
class FakeSide {
 public:
  FakeSide(Communicator& communicator, const Case& c, ExchangeOptions options)
      : exchange_(communicator, c.layout, options, gpu_, checked_messages(communicator, gpu_)),
        reader_(gpu_.make_stream()) {
    for (int w = 0; w < c.workers; ++w) streams_.push_back(gpu_.make_stream());
  }
  [[nodiscard]] GpuExchange& exchange() { return exchange_; }
  void write(unsigned worker, Leaf leaf, const std::vector<float>& values) {
    const FakeGpu::Stream stream = streams_[worker];
    gpu_.wait(stream, leaf.free);
    gpu_.kernel_writes(stream, bytes_of(leaf.memory), values.size() * sizeof(float));
    fill(leaf, values);
    gpu_.record(leaf.written, stream);
  }
  [[nodiscard]] std::span<const float> read(int bucket) {
    const auto sums = exchange_.reduced(bucket);
    gpu_.wait(reader_, exchange_.whole());
    gpu_.kernel_reads(reader_, bytes_of(sums.data()), sums.size_bytes());
    return sums;
  }
  void have_read() { exchange_.release(reader_); }

 private:
  FakeGpu gpu_;
  GpuExchange exchange_;
  FakeGpu::Stream reader_;
  std::vector<FakeGpu::Stream> streams_;
};

Case random_case(unsigned seed) {
  std::mt19937 random(seed);
  Case c;
  c.layout = random_layout(random, between(random, 1, 24));
  c.ranks = between(random, 1, 5);
  c.workers = between(random, 1, 3);
  c.hosts = random_hosts(random, c.ranks, 3);
  c.order = static_cast<unsigned>(random());
  const int steps = between(random, 1, 3);
  for (int s = 0; s < steps; ++s) c.assignments.push_back(random_assignment(random, c.layout.shards, c.hosts));
  return c;
}

TEST(GpuExchange, HasTheTreesBitsAndTheFormulasBytesInAnyWay) {
  for (const unsigned seed : seeds(kSeeds)) {
    const Case c = random_case(seed);
    ASSERT_EQ(wrong<FakeSide>(c, expected_of(c), kOptions), "")
        << "seed " << seed << ": " << c.text() << "\n  " << rerun(seed, "comm_test");
  }
}

TEST(GpuExchange, NotExactIsTheSumAllTheSame) {
  Case c;
  c.layout = {{5000, 70}, {chunk_cuts(std::vector<std::int64_t>{5000}), {}}, 4};
  c.ranks = 3;
  c.workers = 2;
  const Assignment assignment = place_shards(std::vector<int>{0, 3, 1});  // a rank without shards gives zeros
  run_in_threads(3, [&](Communicator& communicator) {
    FakeSide side(communicator, c, {.exact = false, .timeout = 60s});
    for (const std::uint64_t step : {5U, 6U}) {
      side.exchange().begin_step(step, assignment);
      compute(side, c, step, assignment.shards_of_rank[static_cast<std::size_t>(communicator.rank())], 1);
      side.exchange().finish();
      for (int b = 0; b < 2; ++b) {
        const auto expected = tree_sum(step, 4, b, c.layout.bucket_elements[static_cast<std::size_t>(b)]);
        const auto found = side.read(b);
        ASSERT_EQ(found.size(), expected.size());
        for (std::size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-4);
      }
      side.have_read();
    }
  });
}

TEST(GpuExchange, EndsWhenAPeerIsGone) {
  Case c;
  c.layout = {{5000}, {chunk_cuts(std::vector<std::int64_t>{5000})}, 2};
  c.ranks = 2;
  const Assignment assignment = place_shards(std::vector<int>{1, 1});
  bool ended = false;
  EXPECT_THROW(run_in_threads(2,
                              [&](Communicator& communicator) {
                                FakeSide side(communicator, c, kOptions);
                                side.exchange().begin_step(5, assignment);
                                if (communicator.rank() == 1) throw Error(ExitCode::internal, "gone");
                                compute(side, c, 5, assignment.shards_of_rank[0], 1);
                                try {
                                  side.exchange().finish();
                                } catch (const Error& error) {
                                  ended = error.code() == ExitCode::infrastructure;
                                  throw;
                                }
                              }),
               Error);
  EXPECT_TRUE(ended);
}

TEST(GpuExchange, NeedsMemoryForRootsShardsAndWaitingSums) {
  EXPECT_EQ(GpuExchange::bytes({{100, 28}, {}, 1}, 1, 1, 2), 128U * 4);                  // the root alone
  EXPECT_EQ(GpuExchange::bytes({{100, 28}, {}, 2}, 1, 2, 1), (2 * 128 + 2 * 100) * 4U);  // and what others send
  EXPECT_EQ(GpuExchange::bytes({{128}, {}, 8}, 8, 1, 1), 5U * 128 * 4);  // root, a shard, a sum for each level
}

}  // namespace
}  // namespace lockstep::comm
