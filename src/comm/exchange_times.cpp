#include "comm/exchange_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>

#include "comm/assignment.hpp"
#include "comm/exchange.hpp"
#include "core/spans.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

constexpr int kWarmUp = 2;
const Operation kTiming{"bench", 0};

ExchangeLayout layout_of(const ExchangeLoad& load, int ranks) {
  ExchangeLayout layout;
  layout.shards = load.shards_a_rank * ranks;
  for (std::int64_t at = 0; at < load.elements; at += load.elements_a_bucket) {
    const std::int64_t size = std::min(load.elements_a_bucket, load.elements - at);
    layout.bucket_elements.push_back(size);
    layout.cuts.push_back(chunk_cuts(std::vector<std::int64_t>{size}));
  }
  return layout;
}

/// Every gradient is 1, so that every sum is the number of shards, in any association.
void fill(Exchange& exchange, const ExchangeLayout& layout, int shard) {
  for (std::size_t b = 0; b < layout.bucket_elements.size(); ++b) {
    const Leaf leaf = exchange.leaf(shard, static_cast<int>(b));
    const std::span<float> gradient(leaf.memory, static_cast<std::size_t>(layout.bucket_elements[b]));
    for (float& value : gradient) value = leaf.add ? value + 1 : 1;
  }
}

void expect_sum(std::span<const float> found, float wanted) {
  const auto wrong = std::find_if(found.begin(), found.end(), [&](float value) { return value != wanted; });
  if (wrong == found.end()) return;
  throw Error(ExitCode::internal, fmt::format("the exchange adds wrongly: element {} of {}: expected {}, found {}",
                                              wrong - found.begin(), found.size(), wanted, *wrong));
}

/// The longest of all ranks, by round.
std::vector<double> slowest(Communicator& communicator, const std::vector<double>& mine) {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  std::vector<double> all(mine.size() * ranks), longest(mine);
  communicator.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)), kTiming);
  for (std::size_t i = 0; i < all.size(); ++i) {
    double& of_round = longest[i % mine.size()];
    of_round = std::max(of_round, all[i]);
  }
  return longest;
}

std::uint64_t sum_over_ranks(Communicator& communicator, std::uint64_t mine) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(communicator.size()));
  communicator.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), kTiming);
  return std::accumulate(all.begin(), all.end(), std::uint64_t{0});
}

/// `prepare`, a barrier, and the time of `work`, round by round.
std::vector<double> timed_rounds(Communicator& communicator, int rounds, const std::function<void(int)>& prepare,
                                 const std::function<void()>& work) {
  std::vector<double> seconds;
  for (int round = 0; round < rounds + kWarmUp; ++round) {
    prepare(round);
    communicator.barrier(kTiming);
    const auto start = Clock::now();
    work();
    if (round >= kWarmUp) seconds.push_back(seconds_since(start));
  }
  return slowest(communicator, seconds);
}

}  // namespace

ExchangeTimes time_exchange(Communicator& communicator, const ExchangeLoad& load, bool exact, int rounds) {
  const ExchangeLayout layout = layout_of(load, communicator.size());
  const auto exchange = make_exchange(communicator, layout, {.exact = exact});
  const Assignment assignment = place_shards(equal_counts(layout.shards, communicator.size()));
  const auto& mine = assignment.shards_of_rank[static_cast<std::size_t>(communicator.rank())];
  const int buckets = static_cast<int>(layout.bucket_elements.size());
  const auto ready = [&](int shard) {
    for (int b = 0; b < buckets; ++b) exchange->ready(shard, b);
  };
  const auto compute = [&](int round) {
    exchange->begin_step(static_cast<std::uint64_t>(round), assignment);
    for (const int shard : mine) {
      fill(*exchange, layout, shard);
      if (shard != mine.back()) ready(shard);
    }
  };
  ExchangeTimes times;
  times.seconds = timed_rounds(communicator, rounds, compute, [&] {
    ready(mine.back());
    exchange->finish();
  });
  for (int b = 0; b < buckets; ++b) expect_sum(exchange->reduced(b), static_cast<float>(layout.shards));
  const auto sent = exchange->statistics();
  const auto all_rounds = static_cast<std::uint64_t>(rounds + kWarmUp);
  times.shared_memory_bytes = sum_over_ranks(communicator, sent.shared_memory_bytes) / all_rounds;
  times.network_bytes = sum_over_ranks(communicator, sent.network_bytes) / all_rounds;
  return times;
}

ExchangeTimes time_all_reduce(Communicator& communicator, std::int64_t elements, int rounds) {
  std::vector<float> values(static_cast<std::size_t>(elements));
  ExchangeTimes times;
  times.seconds = timed_rounds(
      communicator, rounds, [&](int) { std::fill(values.begin(), values.end(), 1.0F); },
      [&] { communicator.all_reduce_sum(values, kTiming); });
  expect_sum(values, static_cast<float>(communicator.size()));
  return times;
}

double bus_bandwidth(double bytes, int ranks, double seconds) {
  return ranks == 1 ? bytes / seconds : bytes * 2 * (ranks - 1) / ranks / seconds;
}

}  // namespace lockstep::comm
