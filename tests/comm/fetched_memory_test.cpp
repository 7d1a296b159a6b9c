// A block of which each host stores what its ranks own: reading a unit returns what its owners have written last.
#include "comm/transport/fetched_memory.hpp"

#include <gtest/gtest.h>

#include <random>
#include <span>
#include <thread>
#include <vector>

#include "lockstep/error.hpp"

namespace lockstep::comm {
namespace {

using Value = std::uint32_t;

/// Ranks on hosts, and a block divided into units and slices of various sizes.
struct Layout {
  std::vector<int> host_of;
  FetchedMemoryOptions options;
};

Layout random_layout(unsigned seed) {
  std::mt19937 random(seed);
  Layout layout;
  const int ranks = 2 + static_cast<int>(random() % 5), hosts = 1 + static_cast<int>(random() % 3);
  for (int r = 0; r < ranks; ++r) layout.host_of.push_back(r < hosts ? r : static_cast<int>(random() % hosts));
  const std::size_t units = 1 + random() % 9;
  std::size_t at = 0;
  for (std::size_t u = 0; u < units; ++u) {
    auto& unit = layout.options.units.emplace_back();
    const std::size_t slices = 1 + random() % 6;
    for (std::size_t s = 0; s < slices; ++s) {
      const std::size_t bytes = sizeof(Value) * (1 + random() % (s % 2 == 0 ? 5000 : 50));
      unit.push_back({at, at + bytes, static_cast<int>(random() % static_cast<unsigned>(ranks))});
      at += bytes + (random() % 3 == 0 ? 64 : 0);
    }
  }
  layout.options.bytes = at;
  layout.options.kept = 1 + static_cast<int>(random() % 4);
  return layout;
}

std::span<Value> values(const FetchedMemory& memory, const OwnedBytes& bytes) {
  return {reinterpret_cast<Value*>(memory.data() + bytes.begin), (bytes.end - bytes.begin) / sizeof(Value)};
}

Value value_of(std::uint64_t version, std::size_t byte) {
  return static_cast<Value>(version * 1'000'003 + byte);
}

void write_own(const FetchedMemory& memory, const Layout& layout, int rank, std::uint64_t version) {
  for (const auto& unit : layout.options.units) {
    for (const OwnedBytes& bytes : unit) {
      if (bytes.owner != rank) continue;
      const auto own = values(memory, bytes);
      for (std::size_t i = 0; i < own.size(); ++i) own[i] = value_of(version, bytes.begin + i * sizeof(Value));
    }
  }
}

/// Whether all of a unit is what its owners have written.
bool stands(const FetchedMemory& memory, const std::vector<OwnedBytes>& unit, std::uint64_t version) {
  for (const OwnedBytes& bytes : unit) {
    const auto found = values(memory, bytes);
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i] != value_of(version, bytes.begin + i * sizeof(Value))) return false;
    }
  }
  return true;
}

TEST(FetchedMemory, AUnitThatIsReadIsWhatItsOwnersHaveWritten) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Layout layout = random_layout(seed);
    run_in_threads(
        static_cast<int>(layout.host_of.size()),
        [&](Communicator& communicator) {
          FetchedMemory memory(communicator, layout.options);
          const Operation operation{"test", 0, std::chrono::milliseconds(20'000)};
          for (std::uint64_t version = 1; version <= 4; ++version) {
            write_own(memory, layout, communicator.rank(), version);
            communicator.barrier(operation);
            memory.next_version();
            std::vector<std::thread> readers;
            for (unsigned t = 0; t < 2; ++t) {
              readers.emplace_back([&, t] {
                std::mt19937 random(seed * 100 + t + static_cast<unsigned>(communicator.rank()) * 7);
                for (int i = 0; i < 12; ++i) {
                  const int unit = static_cast<int>(random() % static_cast<unsigned>(memory.units()));
                  memory.prefetch(static_cast<int>(random() % static_cast<unsigned>(memory.units())));
                  memory.acquire(unit, operation);
                  EXPECT_TRUE(stands(memory, layout.options.units[static_cast<std::size_t>(unit)], version))
                      << "seed " << seed << ", unit " << unit;
                  memory.release(unit);
                }
              });
            }
            for (std::thread& reader : readers) reader.join();
            memory.settle(operation);
            communicator.barrier(operation);
          }
        },
        layout.host_of);
    if (HasFailure()) return;
  }
}

/// One unit for each of two ranks on separate hosts, of many pages.
Layout two_hosts() {
  Layout layout;
  layout.host_of = {0, 1};
  const std::size_t bytes = std::size_t{1} << 20;
  for (std::size_t u = 0; u < 8; ++u) layout.options.units.push_back({{u * bytes, (u + 1) * bytes, u < 4 ? 0 : 1}});
  layout.options.bytes = 8 * bytes;
  layout.options.kept = 2;
  return layout;
}

TEST(FetchedMemory, SendsOnlyWhatAnotherHostReads) {
  const Layout layout = two_hosts();
  run_in_threads(
      2,
      [&](Communicator& communicator) {
        FetchedMemory memory(communicator, layout.options);
        const Operation operation{"test", 0, std::chrono::milliseconds(20'000)};
        write_own(memory, layout, communicator.rank(), 1);
        communicator.barrier(operation);
        if (communicator.rank() == 0) {
          for (const int unit : {0, 4, 4, 5, 4, 6}) {  // 4 and 5 are kept; 6 replaces 5
            memory.acquire(unit, operation);
            memory.release(unit);
          }
          memory.acquire(4, operation);
          memory.release(4);
        }
        memory.settle(operation);
        communicator.barrier(operation);
        EXPECT_EQ(memory.bytes_sent(), communicator.rank() == 0 ? 0U : 3U << 20);
      },
      layout.host_of);
}

TEST(FetchedMemory, ARankThatDoesNotAnswerIsNamed) {
  const Layout layout = two_hosts();
  std::string message;
  try {
    run_in_threads(
        2,
        [&](Communicator& communicator) {
          FetchedMemory memory(communicator, layout.options);
          const Operation barrier{"test", 0, std::chrono::milliseconds(20'000)};
          communicator.barrier(barrier);
          if (communicator.rank() == 1) return (void)std::this_thread::sleep_for(std::chrono::milliseconds(500));
          for (int unit = 4; unit < 8; ++unit) {  // one may have arrived before the first look at the clock
            memory.acquire(unit, {"all-gather of parameters", 3, std::chrono::milliseconds(0)});
          }
        },
        layout.host_of);
  } catch (const Error& error) {
    message = error.what();
  }
  EXPECT_EQ(message.find("rank 0 on host a: waited 0.0 s for rank 1 (host b) in 'all-gather of parameters' of step 3: "
                         "unit "),
            0U)
      << message;
  EXPECT_NE(message.find(" of the parameters has not come"), std::string::npos) << message;
}

}  // namespace
}  // namespace lockstep::comm
