// Run under mpirun: reduces known gradients over several steps and placements, without training, and checks bits, bytes
// and collectives. Rank 0 prints one hash of all reduced gradients, which must not depend on the number of ranks.
// Arguments: "reduce", or "missing" (rank 1 stops; the others must report that and abort with 1).
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>

#include "comm/reduce/gradient_reducer.hpp"
#include "comm/reduce_cases.hpp"
#include "comm/transport/mpi_session.hpp"
#include "core/digest.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;

constexpr int kMicroBatches = 13;

GradientBuckets gradient_buckets() {
  const std::vector<std::int64_t> first = {50'000, 7, 0, 9'999}, second = {3}, third = {70'000};
  return {{bucket_of(first), {}, bucket_of(second), bucket_of(third)}, kMicroBatches};
}

void require(bool holds, const std::string& what) {
  if (!holds) throw Error(ExitCode::internal, what);
}

void compute(GradientReducer& reducer, std::uint64_t step, const std::vector<int>& micro_batches) {
  const auto work = [&](std::size_t first) {
    for (std::size_t i = first; i < micro_batches.size(); i += 2) {
      for (int b = 3; b >= 0; --b) {
        const auto values = gradient(step, micro_batches[i], b, gradient_buckets().at(b).elements);
        fill(reducer.buffer(micro_batches[i], b), values);
        reducer.ready(micro_batches[i], b);
      }
    }
  };
  std::thread other([&] { work(1); });
  work(0);
  other.join();
}

void check_reduce(Communicator& c) {
  const auto reducer = make_reducer(c, gradient_buckets());
  std::mt19937 random(7);
  TrafficFormula formula;
  Sha256 hash;
  for (std::uint64_t step = 1; step <= 6; ++step) {
    const MicroBatchAssignment assignment = random_assignment(random, kMicroBatches, c.topology().host_of);
    const auto& mine = assignment.micro_batches_of_rank[static_cast<std::size_t>(c.rank())];
    reducer->begin_step(step, assignment);
    compute(*reducer, step, mine);
    reducer->finish();
    for (int b = 0; b < 4; ++b) {
      const auto found = reducer->reduced(b);
      const auto expected = tree_sum(step, kMicroBatches, b, gradient_buckets().at(b).elements);
      require(std::equal(found.begin(), found.end(), expected.begin(), expected.end()), "bits differ from the tree's");
      hash.add(std::as_bytes(found));
    }
    std::vector<int> all(kMicroBatches);
    std::iota(all.begin(), all.end(), 0);
    const std::vector<double> own = scalars_of(step, mine);
    const Scalars scalars = reducer->scalars({own, 3, {}, c.rank() == 0 ? 4U : 0U});
    require(scalars.values == scalars_of(step, all) && scalars.flags == 4U, "scalars differ");
    formula.add(c, gradient_buckets(), assignment);
  }
  require(reducer->statistics().shared_memory_bytes == formula.shared_memory_bytes, "bytes in shared memory");
  require(reducer->statistics().network_bytes == formula.network_bytes, "bytes by messages");
  if (c.rank() == 0) fmt::print("sha256 {}\n", hash.hex());
}

void check_collectives(Communicator& c) {
  const Operation operation{"check", 1, 20'000ms};
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{1} << 20}) {
    std::vector<float> values(size, static_cast<float>(c.rank() + 1));
    std::vector<float> all(size * static_cast<std::size_t>(c.size()));
    c.all_gather(std::as_bytes(std::span(values)), std::as_writable_bytes(std::span(all)), operation);
    for (std::size_t i = 0; i < all.size(); ++i) require(all[i] == static_cast<float>(i / size + 1), "all_gather");
    c.all_reduce_sum(values, operation);
    const auto sum = static_cast<float>(c.size() * (c.size() + 1) / 2);
    for (const float value : values) require(value == sum, "all_reduce_sum");
    values.assign(size, static_cast<float>(c.rank()));
    c.broadcast(std::as_writable_bytes(std::span(values)), c.size() - 1, operation);
    for (const float value : values) require(value == static_cast<float>(c.size() - 1), "broadcast");
    c.barrier(operation);
  }
}

void check_missing(Communicator& c) {
  const auto reducer = make_reducer(c, gradient_buckets(), {.timeout = 500ms});
  const MicroBatchAssignment assignment = place_micro_batches(equal_counts(kMicroBatches, c.size()));
  if (c.rank() == 1) {
    reducer->begin_step(17, assignment);
    std::this_thread::sleep_for(30s);  // until the others end it
  }
  reducer->begin_step(17, assignment);
  compute(*reducer, 17, assignment.micro_batches_of_rank[static_cast<std::size_t>(c.rank())]);
  reducer->finish();
}

int run(const std::string& what) {
  const auto communicator = make_mpi_communicator();
  try {
    if (what == "missing") {
      check_missing(*communicator);
    } else {
      check_collectives(*communicator);
      check_reduce(*communicator);
    }
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    communicator->abort(static_cast<int>(error.code()));
  }
  return 0;
}

}  // namespace
}  // namespace lockstep::comm

int main(int count, char** arguments) {
  return lockstep::comm::run(count > 1 ? arguments[1] : "reduce");
}
