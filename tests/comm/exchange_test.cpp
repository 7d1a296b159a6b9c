#include "comm/exchange.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>

#include "comm/exchange_cases.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;

struct Case {
  int shards = 1, ranks = 1, workers = 1, steps = 1;
  ExchangeLayout layout;
  std::vector<Assignment> assignments;  ///< by step
  std::vector<int> hosts;
  bool sleeps = false;
};

Case random_case(std::mt19937& random) {
  Case c;
  c.shards = 1 + static_cast<int>(random() % 40);
  c.ranks = 1 + static_cast<int>(random() % 8);
  c.workers = 1 + static_cast<int>(random() % 3);
  c.steps = 1 + static_cast<int>(random() % 3);
  c.layout = random_layout(random, c.shards);
  for (int s = 0; s < c.steps; ++s) c.assignments.push_back(random_assignment(random, c.shards, c.ranks));
  const unsigned hosts = 1 + random() % 4;
  for (int r = 0; r < c.ranks; ++r) c.hosts.push_back(static_cast<int>(random() % hosts));
  return c;
}

// One rank's part of a step: workers compute shards in the given order and finish buckets in random order.
void compute(Exchange& exchange, const Case& c, std::uint64_t step, const std::vector<int>& shards, unsigned seed) {
  std::mutex mutex;
  std::size_t next = 0;
  const auto work = [&](unsigned worker) {
    std::mt19937 random(seed * 31 + worker);
    while (true) {
      int shard = 0;
      {
        const std::lock_guard lock(mutex);
        if (next == shards.size()) return;
        shard = shards[next++];
      }
      std::vector<int> order(c.layout.bucket_elements.size());
      for (std::size_t b = 0; b < order.size(); ++b) order[b] = static_cast<int>(b);
      std::shuffle(order.begin(), order.end(), random);
      for (const int bucket : order) {
        const auto values = gradient(step, shard, bucket, c.layout.bucket_elements[static_cast<std::size_t>(bucket)]);
        float* leaf = exchange.leaf(shard, bucket);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(leaf) % 64, 0U);
        std::copy(values.begin(), values.end(), leaf);
        if (c.sleeps && random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 400));
        exchange.ready(shard, bucket);
      }
    }
  };
  std::vector<std::thread> threads;
  for (int w = 0; w < c.workers; ++w) threads.emplace_back(work, static_cast<unsigned>(w));
  for (std::thread& thread : threads) thread.join();
}

std::vector<float> reduced(const Exchange& exchange, int bucket) {
  const auto values = exchange.reduced(bucket);
  return {values.begin(), values.end()};
}

void expect_same_bits(const std::vector<float>& found, const std::vector<float>& expected, const std::string& where) {
  ASSERT_EQ(found.size(), expected.size()) << where;
  if (found.empty()) return;  // memcmp needs an address
  EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0) << where;
}

void check_case(const Case& c) {
  run_in_threads(
      c.ranks,
      [&](Communicator& communicator) {
        const auto exchange = make_exchange(communicator, c.layout, {.timeout = 60s});
        const auto mine = static_cast<std::size_t>(communicator.rank());
        TrafficFormula formula;
        for (int s = 0; s < c.steps; ++s) {
          const Assignment& assignment = c.assignments[static_cast<std::size_t>(s)];
          const auto& shards = assignment.shards_of_rank[mine];
          const auto step = static_cast<std::uint64_t>(s) + 5;
          exchange->begin_step(step, assignment);
          compute(*exchange, c, step, shards, static_cast<unsigned>(s * 100) + static_cast<unsigned>(mine));
          exchange->finish();
          for (std::size_t b = 0; b < c.layout.bucket_elements.size(); ++b) {
            expect_same_bits(reduced(*exchange, static_cast<int>(b)),
                             tree_sum(step, c.shards, static_cast<int>(b), c.layout.bucket_elements[b]),
                             fmt::format("V={} R={} rank {} step {} bucket {}", c.shards, c.ranks, mine, s, b));
          }
          const std::vector<double> own = {static_cast<double>(mine) + 0.5, static_cast<double>(step)};
          const Scalars scalars = exchange->scalars(scalars_of(step, shards), 3, 1U << mine, own);
          std::vector<int> all_shards(static_cast<std::size_t>(c.shards));
          for (int v = 0; v < c.shards; ++v) all_shards[static_cast<std::size_t>(v)] = v;
          EXPECT_EQ(scalars.values, scalars_of(step, all_shards));
          EXPECT_EQ(scalars.flags, (1U << c.ranks) - 1);
          ASSERT_EQ(std::ssize(scalars.rank_values), 2 * c.ranks);
          for (std::size_t r = 0; r < static_cast<std::size_t>(c.ranks); ++r) {
            EXPECT_EQ(scalars.rank_values[2 * r], static_cast<double>(r) + 0.5);
            EXPECT_EQ(scalars.rank_values[2 * r + 1], static_cast<double>(step));
          }
          formula.add(communicator, c.layout, assignment);
        }
        EXPECT_EQ(exchange->statistics().shared_memory_bytes, formula.shared_memory_bytes);
        EXPECT_EQ(exchange->statistics().network_bytes, formula.network_bytes);
      },
      c.hosts);
}

TEST(Exchange, AnyPlacementGivesTheBitsOfTheTreeAndTheBytesOfTheFormula) {
  std::mt19937 random(1);
  for (int round = 0; round < 150; ++round) check_case(random_case(random));
}

TEST(Exchange, TwoHundredStepsWithNewPlacementsUnderRandomSleeps) {
  std::mt19937 random(2);
  for (const bool several_hosts : {false, true}) {
    Case c;
    c.shards = 12;
    c.ranks = 4;
    c.workers = 2;
    c.steps = 200;
    c.sleeps = true;
    c.layout = {{700, 0, 9000}, {{}, {}, {0, 4096, 8192}}, 12};
    for (int s = 0; s < c.steps; ++s) c.assignments.push_back(random_assignment(random, c.shards, c.ranks));
    c.hosts = several_hosts ? std::vector{0, 1, 0, 1} : std::vector{0, 0, 0, 0};
    check_case(c);
  }
}

TEST(Exchange, AlignedSplitCostsWhatARingAllReduceDoes) {
  run_in_threads(4, [](Communicator& communicator) {
    const ExchangeLayout layout{{16384}, {chunk_cuts(std::vector<std::int64_t>{16384})}, 8};
    const auto exchange = make_exchange(communicator, layout);
    Case c;
    c.layout = layout;
    const Assignment assignment = place_shards(equal_counts(8, 4));
    exchange->begin_step(1, assignment);
    compute(*exchange, c, 1, assignment.shards_of_rank[static_cast<std::size_t>(communicator.rank())], 1);
    exchange->finish();
    EXPECT_EQ(exchange->statistics().shared_memory_bytes, 2 * 3 * 16384 * sizeof(float) / 4);
  });
}

// Without exact sums the bits depend on the placement: this is what the tree is for.
TEST(Exchange, PlainAllReduceDiffersAtThreeRanks) {
  const Assignment assignment = place_shards(equal_counts(8, 3));
  Case c;
  c.layout = {{5000}, {}, 8};
  std::vector<std::vector<float>> found(3);
  run_in_threads(3, [&](Communicator& communicator) {
    const auto exchange = make_exchange(communicator, c.layout, {.exact = false});
    const auto mine = static_cast<std::size_t>(communicator.rank());
    exchange->begin_step(1, assignment);
    compute(*exchange, c, 1, assignment.shards_of_rank[mine], 1);
    exchange->finish();
    found[mine] = reduced(*exchange, 0);
  });
  const auto expected = tree_sum(1, 8, 0, 5000);
  EXPECT_EQ(found[0], found[1]);
  EXPECT_NE(found[0], expected);
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[0][i], expected[i], 1e-3);
}

TEST(Exchange, PlainAllReduceWithARankWithoutShards) {
  run_in_threads(2, [&](Communicator& communicator) {
    Case c;
    c.layout = {{100}, {}, 2};
    const auto exchange = make_exchange(communicator, c.layout, {.exact = false});
    const Assignment assignment{{{}, {0, 1}}};
    exchange->begin_step(1, assignment);
    compute(*exchange, c, 1, assignment.shards_of_rank[static_cast<std::size_t>(communicator.rank())], 1);
    exchange->finish();
    EXPECT_EQ(reduced(*exchange, 0), tree_sum(1, 2, 0, 100));
  });
}

TEST(Exchange, FewGradientsAreAliveAtOnce) {
  for (const int workers : {1, 2, 3}) {
    run_in_threads(1, [&](Communicator& communicator) {
      Case c;
      c.workers = workers;
      c.layout = {{1000, 3000}, {}, 64};
      const auto exchange = make_exchange(communicator, c.layout);
      const Assignment assignment = place_shards(equal_counts(64, 1));
      for (std::uint64_t step = 1; step <= 3; ++step) {
        exchange->begin_step(step, assignment);
        compute(*exchange, c, step, assignment.shards_of_rank[0], 1);
        exchange->finish();
      }
      // A sum waits only for a sibling that holds the next shard or one in work: at most 6 waiters for each. A
      // worker that is held up makes its 6 wait.
      const int bound = workers == 1 ? 6 + 1 : workers * (6 + 1) + 6;
      EXPECT_LE(exchange->statistics().peak_elements, bound * 4000);
    });
  }
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::infrastructure);
    return error.what();
  }
  return "no error";
}

constexpr const char* kHint =
    "; look at that rank's log: it ended, hangs or is much slower than this one (then raise job.timeout)";

// Rank 2 maps the memory with the others in step 1 and never arrives in step 2.
std::string missing_rank_message(const std::vector<int>& hosts, bool in_scalars) {
  std::string message;
  run_in_threads(
      3,
      [&](Communicator& communicator) {
        Case c;
        c.layout = {{30000}, {chunk_cuts(std::vector<std::int64_t>{30000})}, 3};
        const Assignment assignment = place_shards(equal_counts(3, 3));
        const auto exchange = make_exchange(communicator, c.layout, {.timeout = 300ms});
        const auto& shards = assignment.shards_of_rank[static_cast<std::size_t>(communicator.rank())];
        for (std::uint64_t step = 16; step <= 17; ++step) {
          if (communicator.rank() == 2 && step == 17) {
            std::this_thread::sleep_for(1s);
            return;
          }
          exchange->begin_step(step, assignment);
          if (in_scalars && step == 17) {
            const std::string found = error_of([&] { (void)exchange->scalars(scalars_of(1, shards), 3, 0); });
            if (communicator.rank() == 1) message = found;
            return;
          }
          compute(*exchange, c, step, shards, 1);
          if (step == 16) {
            exchange->finish();
          } else {
            const std::string found = error_of([&] { exchange->finish(); });
            if (communicator.rank() == 1) message = found;
            std::this_thread::sleep_for(300ms);  // both survivors see the deadline
          }
        }
      },
      hosts);
  return message;
}

TEST(Exchange, DeadlineNamesTheRankThatNeverArrived) {
  EXPECT_EQ(missing_rank_message({0, 0, 0}, false),
            std::string("rank 1 on host a: waited 0.3 s for rank 2 (host a) in 'exchange' of step 17: it has not "
                        "begun this step") +
                kHint);
  EXPECT_EQ(missing_rank_message({0, 0, 1}, false),
            std::string("rank 1 on host a: waited 0.3 s for rank 2 (host b) in 'exchange' of step 17: its partial "
                        "sum of bucket 0 has not come") +
                kHint);
  EXPECT_EQ(missing_rank_message({0, 0, 0}, true),
            std::string("rank 1 on host a: waited 0.3 s for rank 2 (host a) in 'scalars' of step 17") + kHint);
  EXPECT_EQ(missing_rank_message({0, 0, 1}, true),
            std::string("rank 1 on host a: waited 0.3 s for rank 2 (host b) in 'scalars' of step 17") + kHint);
}

}  // namespace
}  // namespace lockstep::comm
