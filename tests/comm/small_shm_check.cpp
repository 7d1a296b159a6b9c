// Run under mpirun by small_shm_test.py, where /dev/shm is small. Arguments: what, and how many MiB.
//   reduce: two ranks reduce a gradient of that size, first with 6 and 2 micro-batches, then with 7 and 1
//   fetch:  a block of that size is divided among the ranks; each writes its own part, then all read everything
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "comm/reduce/gradient_reducer.hpp"
#include "comm/reduce_cases.hpp"
#include "comm/transport/fetched_memory.hpp"
#include "comm/transport/mpi_session.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {
namespace {

constexpr int kMicroBatches = 8;

// Gradients of ones: their sum is the number of micro-batches.
void reduce(Communicator& c, std::size_t bytes) {
  const std::vector<std::int64_t> tensors = {static_cast<std::int64_t>(bytes / sizeof(float))};
  const auto reducer = make_reducer(c, {{bucket_of(tensors)}, kMicroBatches});
  for (std::uint64_t step = 1; step <= 2; ++step) {
    const std::vector<int> counts = step == 1 ? std::vector<int>{6, 2} : std::vector<int>{7, 1};
    const MicroBatchAssignment assignment = place_micro_batches(counts);
    // A late rank still maps the old memory when its peer begins the step.
    if (step == 2 && c.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    reducer->begin_step(step, assignment);
    for (const int micro_batch : assignment.micro_batches_of_rank[static_cast<std::size_t>(c.rank())]) {
      const GradientBuffer buffer = reducer->buffer(micro_batch, 0);
      for (std::int64_t i = 0; i < tensors[0]; ++i) buffer.memory[i] = buffer.add ? buffer.memory[i] + 1 : 1;
      reducer->ready(micro_batch, 0);
    }
    reducer->finish();
    for (const float sum : reducer->reduced(0)) LOCKSTEP_CHECK(sum == kMicroBatches, "the sum of all micro-batches");
  }
}

// Slices do not end where pages do.
void fetch(Communicator& c, std::size_t bytes) {
  constexpr std::size_t kSlice = (std::size_t{1} << 20) + 64;
  FetchedMemoryOptions options;
  options.kept = 2;
  for (int slice = 0; options.bytes + kSlice <= bytes; ++slice, options.bytes += kSlice) {
    options.units.push_back({{options.bytes, options.bytes + kSlice, slice % c.size()}});
  }
  const auto units = options.units;
  FetchedMemory memory(c, std::move(options));
  const Operation operation{"fetch", 1, std::chrono::milliseconds(20'000)};
  for (const auto& unit : units) {
    const OwnedBytes& own = unit.front();
    if (own.owner == c.rank()) std::fill(memory.data() + own.begin, memory.data() + own.end, std::byte{1});
  }
  c.barrier(operation);
  memory.next_version();
  for (int u = 0; u < memory.units(); ++u) {
    memory.acquire(u, operation);
    const OwnedBytes& all = units[static_cast<std::size_t>(u)].front();
    for (std::size_t i = all.begin; i < all.end; ++i) LOCKSTEP_CHECK(memory.data()[i] == std::byte{1}, "what is owned");
    memory.release(u);
  }
  memory.settle(operation);
  c.barrier(operation);
}

int run(const std::string& what, std::size_t bytes) {
  const auto communicator = make_mpi_communicator();
  try {
    what == "fetch" ? fetch(*communicator, bytes) : reduce(*communicator, bytes);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    communicator->abort(static_cast<int>(error.code()));
  }
  return 0;
}

}  // namespace
}  // namespace lockstep::comm

int main(int count, char** arguments) {
  if (count != 3) return 64;
  return lockstep::comm::run(arguments[1], std::strtoul(arguments[2], nullptr, 10) << 20);
}
