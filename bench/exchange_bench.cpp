// The gradient exchange against MPI_Allreduce, under mpirun:
//
//   mpirun -n 2 build/release/bin/exchange_bench [megabytes ...]
//
// Prints for each size the time from "all gradients are there" to "every rank has the sum": best and median
// of 30. MPI_Allreduce is measured out of place and in place, on MPI's own thread. Buckets are 1 MiB.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "comm/exchange.hpp"
#include "comm/mpi_session.hpp"
#include "core/spans.hpp"

namespace {

using namespace lockstep;
using namespace lockstep::comm;

constexpr int kRounds = 30;
constexpr std::int64_t kBucket = 1 << 18;
const Operation kBarrier{"bench", 0};

struct Times {
  std::vector<double> milliseconds;
  [[nodiscard]] std::string text() const {
    auto sorted = milliseconds;
    std::sort(sorted.begin(), sorted.end());
    return fmt::format("{:8.2f} {:8.2f}", sorted.front(), sorted[sorted.size() / 2]);
  }
};

Times exchange_times(Communicator& c, std::int64_t elements, int shards, bool exact) {
  ExchangeLayout layout;
  layout.shards = shards;
  for (std::int64_t at = 0; at < elements; at += kBucket) {
    const std::int64_t size = std::min(kBucket, elements - at);
    layout.bucket_elements.push_back(size);
    layout.cuts.push_back(chunk_cuts(std::vector<std::int64_t>{size}));
  }
  const auto exchange = make_exchange(c, layout, {.exact = exact});
  const Assignment assignment = place_shards(equal_counts(shards, c.size()));
  const auto& mine = assignment.shards_of_rank[static_cast<std::size_t>(c.rank())];
  const int buckets = static_cast<int>(layout.bucket_elements.size());
  const auto each = [&](int shard, int first, int end, const auto& visit) {
    for (int b = first; b < end; ++b) visit(shard, b);
  };
  Times times;
  for (std::uint64_t round = 0; round < kRounds + 2; ++round) {
    exchange->begin_step(round, assignment);
    for (const int shard : mine) {
      each(shard, 0, buckets, [&](int s, int b) {
        const comm::Leaf leaf = exchange->leaf(s, b);
        float* end = leaf.memory + layout.bucket_elements[static_cast<std::size_t>(b)];
        std::transform(leaf.memory, end, leaf.memory, [&](float there) { return leaf.add ? there + 1 : 1; });
      });
      if (shard != mine.back()) each(shard, 0, buckets, [&](int s, int b) { exchange->ready(s, b); });
    }
    c.barrier(kBarrier);
    const auto start = Clock::now();
    if (!mine.empty()) each(mine.back(), 0, buckets, [&](int s, int b) { exchange->ready(s, b); });
    exchange->finish();
    if (round >= 2) times.milliseconds.push_back(1e3 * seconds_since(start));
  }
  return times;
}

Times all_reduce_times(std::int64_t elements, bool in_place) {
  std::vector<float> in(static_cast<std::size_t>(elements), 1.0F), out(in.size());
  Times times;
  for (int round = 0; round < kRounds + 2; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    const auto start = Clock::now();
    MPI_Allreduce(in_place ? MPI_IN_PLACE : in.data(), out.data(), static_cast<int>(elements), MPI_FLOAT, MPI_SUM,
                  MPI_COMM_WORLD);
    if (round >= 2) times.milliseconds.push_back(1e3 * seconds_since(start));
  }
  return times;
}

// MPI's own part first, by this thread, in a process of its own: `exchange_bench mpi 64`.
int bench_mpi(const std::vector<double>& sizes) {
  MPI_Init(nullptr, nullptr);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (const double size : sizes) {
    const auto elements = static_cast<std::int64_t>(size * 1024 * 1024 / sizeof(float));
    const auto out = all_reduce_times(elements, false), in = all_reduce_times(elements, true);
    if (rank != 0) continue;
    fmt::print("{:6.1f} MiB  MPI_Allreduce            {}\n", size, out.text());
    fmt::print("{:6.1f} MiB  MPI_Allreduce in place   {}\n", size, in.text());
  }
  MPI_Finalize();
  return 0;
}

int bench_exchange(const std::vector<double>& sizes) {
  const auto c = make_mpi_communicator();
  for (const double size : sizes) {
    const auto elements = static_cast<std::int64_t>(size * 1024 * 1024 / sizeof(float));
    const auto aligned = exchange_times(*c, elements, c->size(), true);
    const auto unaligned = exchange_times(*c, elements, 3 * c->size(), true);
    const auto plain = exchange_times(*c, elements, c->size(), false);
    if (c->rank() != 0) continue;
    fmt::print("{:6.1f} MiB  exchange, 1 shard a rank {}\n", size, aligned.text());
    fmt::print("{:6.1f} MiB  exchange, 3 shards       {}\n", size, unaligned.text());
    fmt::print("{:6.1f} MiB  exact: never             {}\n", size, plain.text());
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> words(arguments + 1, arguments + count);
  const bool mpi = !words.empty() && words[0] == "mpi";
  if (mpi) words.erase(words.begin());
  std::vector<double> sizes;
  for (const std::string& word : words) sizes.push_back(std::atof(word.c_str()));
  if (sizes.empty()) sizes = {4, 64};
  return mpi ? bench_mpi(sizes) : bench_exchange(sizes);
}
