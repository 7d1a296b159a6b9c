// The stand-in for NCCL on planted faults. Both ranks are in this process, and so have one GPU: each has its own
// stream, and claims to be a separate host.
#include <nccl.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <thread>
#include <utility>

#include "cuda/interpreter/planted.hpp"

namespace lockstep::ptx {

namespace {

class NcclChecks : public Planted {
 protected:
  static constexpr std::size_t kCount = 32;

  void SetUp() override {
    Planted::SetUp();
    streams_[0] = stream_;
    ASSERT_EQ(cudaStreamCreateWithFlags(&streams_[1], cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), cudaSuccess);
  }
  void TearDown() override {
    abort_all();
    EXPECT_EQ(cudaEventDestroy(event_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(streams_[1]), cudaSuccess);
    Planted::TearDown();
  }

  /// For kernels that would wait forever: freeing memory would wait for them.
  void abort_all() {
    for (ncclComm_t& one : ranks_) {
      if (one == nullptr) continue;
      EXPECT_EQ(ncclCommAbort(std::exchange(one, nullptr)), ncclSuccess);
    }
  }

  /// The final result of the start on each rank.
  std::array<ncclResult_t, 2> start(const char* host = "b", int ranks_of_second = 2) {
    ncclUniqueId id;
    EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    for (const int rank : {0, 1}) {
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      setenv("NCCL_HOSTID", rank == 0 ? "a" : host, 1);
      EXPECT_EQ(ncclCommInitRankConfig(&at(rank), rank == 0 ? 2 : ranks_of_second, id, rank, &config), ncclInProgress);
    }
    unsetenv("NCCL_HOSTID");
    return settled();
  }
  void start_right() { ASSERT_EQ(start(), (std::array{ncclSuccess, ncclSuccess})); }
  [[nodiscard]] ncclComm_t& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] cudaStream_t on(int rank) const { return streams_[static_cast<std::size_t>(rank)]; }
  ncclResult_t asked(int rank) {
    ncclResult_t state = ncclInternalError;
    EXPECT_EQ(ncclCommGetAsyncError(at(rank), &state), ncclSuccess);
    return state;
  }
  std::array<ncclResult_t, 2> settled() {
    std::array<ncclResult_t, 2> states{};
    for (int i = 0; i < 100; ++i) states = {asked(0), asked(1)};
    return states;
  }
  /// Enqueues a group on a rank, and waits until it is taken.
  void group(int rank, const std::function<void(ncclComm_t, cudaStream_t)>& calls) {
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    calls(at(rank), on(rank));
    const ncclResult_t ended = ncclGroupEnd();
    ASSERT_TRUE(ended == ncclSuccess || ended == ncclInProgress) << ended;
    for (int i = 0; i < 100; ++i) (void)asked(rank);
    ASSERT_EQ(asked(rank), ncclSuccess);
  }
  void send(int rank, const void* from, std::size_t count = kCount) {
    group(rank, [&](auto ranks, auto stream) {
      EXPECT_EQ(ncclSend(from, count, ncclFloat, 1 - rank, ranks, stream), ncclSuccess);
    });
  }
  void receive(int rank, void* to, std::size_t count = kCount) {
    group(rank, [&](auto ranks, auto stream) {
      EXPECT_EQ(ncclRecv(to, count, ncclFloat, 1 - rank, ranks, stream), ncclSuccess);
    });
  }
  /// Whether the rank's stream finishes while a host only polls.
  bool comes(int rank) {
    EXPECT_EQ(cudaEventRecord(event_, on(rank)), cudaSuccess);
    for (int i = 0; i < 200; ++i) {
      if (cudaEventQuery(event_) == cudaSuccess) return true;
    }
    return false;
  }
  void finish() { ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess); }
  void fill(const Block& block, std::initializer_list<float> values) {
    const Block pinned(values.size() * sizeof(float), true);
    std::copy(values.begin(), values.end(), static_cast<float*>(pinned.get()));
    ASSERT_EQ(
        cudaMemcpyAsync(block.get(), pinned.get(), values.size() * sizeof(float), cudaMemcpyHostToDevice, stream_),
        cudaSuccess);
    finish();
  }
  std::vector<float> read(const Block& block, std::size_t count) {
    const Block pinned(count * sizeof(float), true);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaMemcpyAsync(pinned.get(), block.get(), count * sizeof(float), cudaMemcpyDeviceToHost, stream_),
              cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    const auto* const first = static_cast<const float*>(pinned.get());
    return {first, first + count};
  }
  /// The problems found, without their places.
  static Texts kinds() {
    Texts all = found();
    for (auto& text : all) text = text.substr(0, text.find(';'));
    return all;
  }

  std::array<ncclComm_t, 2> ranks_{};
  std::array<cudaStream_t, 2> streams_{};
  cudaEvent_t event_ = nullptr;
};

using Floats = std::vector<float>;

}  // namespace

TEST_F(NcclChecks, MessagesBothWaysInOneGroup) {
  start_right();
  const Block a(16), b(16), from_a(16), from_b(16);
  fill(a, {1, 2, 3, 4});
  fill(b, {5, 6, 7, 8});
  for (const int rank : {0, 1}) {
    group(rank, [&](auto ranks, auto stream) {
      EXPECT_EQ(ncclSend(rank == 0 ? a.get() : b.get(), 4, ncclFloat, 1 - rank, ranks, stream), ncclSuccess);
      EXPECT_EQ(ncclRecv(rank == 0 ? from_b.get() : from_a.get(), 4, ncclFloat, 1 - rank, ranks, stream), ncclSuccess);
    });
  }
  EXPECT_EQ(read(from_b, 4), (Floats{5, 6, 7, 8}));
  EXPECT_EQ(read(from_a, 4), (Floats{1, 2, 3, 4}));
  EXPECT_EQ(found(), Texts{});
}

TEST_F(NcclChecks, Collectives) {
  start_right();
  const Block a(16), b(16);
  fill(a, {1, 2, 0, 0});
  fill(b, {0, 0, 30, 40});
  for (const int rank : {0, 1}) {
    auto* const bucket = static_cast<float*>(rank == 0 ? a.get() : b.get());
    group(rank, [&](auto ranks, auto stream) {
      EXPECT_EQ(ncclAllGather(bucket + 2 * rank, bucket, 2, ncclFloat, ranks, stream), ncclSuccess);
      EXPECT_EQ(ncclAllGather(bucket, bucket, 0, ncclFloat, ranks, stream), ncclSuccess);
    });
    group(rank, [&](auto ranks, auto stream) {
      EXPECT_EQ(ncclAllReduce(bucket, bucket, 3, ncclFloat, ncclSum, ranks, stream), ncclSuccess);
    });
    group(rank, [&](auto ranks, auto stream) {
      for (const int root : {0, 1}) {
        EXPECT_EQ(ncclBroadcast(bucket + root, bucket + root, 1, ncclFloat, root, ranks, stream), ncclSuccess);
      }
    });
  }
  EXPECT_EQ(read(a, 4), (Floats{2, 4, 60, 40}));
  EXPECT_EQ(read(b, 4), (Floats{2, 4, 60, 40}));
  EXPECT_EQ(found(), Texts{});
}

TEST_F(NcclChecks, AGroupIsThereOnlyOnceItWasTaken) {
  start_right();
  const Block a(128), b(128);
  clear(a.get(), 128);
  ASSERT_EQ(ncclSend(a.get(), kCount, ncclFloat, 1, at(0), on(0)), ncclInProgress);
  EXPECT_EQ(ncclSend(a.get(), kCount, ncclFloat, 1, at(0), on(0)), ncclInvalidArgument);
  EXPECT_STREQ(ncclGetLastError(at(0)),
               "Attempt to use communicator before the previous operation returned ncclSuccess");
  EXPECT_TRUE(comes(0)) << "nobody has asked whether it was taken";
  receive(1, b.get());
  EXPECT_FALSE(comes(1));
  EXPECT_EQ(settled(), (std::array{ncclSuccess, ncclSuccess}));
  EXPECT_TRUE(comes(1));
  EXPECT_EQ(found(), Texts{});
}

TEST_F(NcclChecks, MissingWaits) {
  start_right();
  const Block a(128), b(128), copy(128);
  kernel(kStore);
  for (const bool waits : {true, false}) {
    cudaStream_t other = nullptr;
    ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(launch_on(other, a.get()), cudaSuccess);
    ASSERT_EQ(cudaEventRecord(event_, other), cudaSuccess);
    if (waits) {
      ASSERT_EQ(cudaStreamWaitEvent(on(0), event_, 0), cudaSuccess);
    }
    send(0, a.get());
    receive(1, b.get());
    ASSERT_EQ(cudaEventRecord(event_, on(1)), cudaSuccess);
    if (waits) {
      ASSERT_EQ(cudaStreamWaitEvent(other, event_, 0), cudaSuccess);
    }
    ASSERT_EQ(cudaMemcpyAsync(copy.get(), b.get(), 128, cudaMemcpyDeviceToDevice, other), cudaSuccess);
    ASSERT_EQ(cudaStreamDestroy(other), cudaSuccess);
    finish();
    if (waits) {
      EXPECT_EQ(found(), Texts{});
    } else {
      const Texts kinds = this->kinds();
      ASSERT_EQ(kinds.size(), 2U);
      EXPECT_TRUE(kinds[1] ==
                      "planted (planted.ptx:21: st.global.u32 [%rd3], %r1) misses a wait: writes what work that "
                      "may run beside it reads" ||
                  kinds[1] == "ncclSend misses a wait: reads what work that may run beside it writes")
          << kinds[1];
      EXPECT_TRUE(kinds[0] == "a copy on the GPU misses a wait: reads what work that may run beside it writes" ||
                  kinds[0] == "ncclRecv misses a wait: writes what work that may run beside it reads")
          << kinds[0];
    }
  }
}

TEST_F(NcclChecks, WhatNobodyWroteAndWhatIsBeyondTheEnd) {
  start_right();
  const Block a(128), b(128);
  clear(a.get(), 124);
  send(0, a.get());
  receive(1, b.get());
  finish();
  EXPECT_EQ(found(), Texts{"ncclSend reads memory that nobody wrote; 0 bytes from the start of GPU allocation " +
                           a.number() + " of 128 bytes, 128 of them"});
  machine().problems.clear();
  clear(a.get(), 128);
  send(0, a.get());
  receive(1, b.at(4));
  EXPECT_FALSE(comes(1));
  EXPECT_EQ(found(), Texts{"ncclRecv writes outside of memory; 128 bytes 4 bytes from the start of GPU allocation " +
                           b.number() + " of 128 bytes, 128 of them"});
  for (ncclComm_t& one : ranks_) EXPECT_EQ(ncclCommAbort(std::exchange(one, nullptr)), ncclSuccess);
  (void)cudaDeviceSynchronize();
  machine().problems.clear();
}

TEST_F(NcclChecks, CallsOfAGroupThatOverlap) {
  start_right();
  const Block a(132), b(128);
  clear(a.get(), 132);
  clear(b.get(), 128);
  group(0, [&](auto ranks, auto stream) {
    EXPECT_EQ(ncclSend(a.get(), kCount, ncclFloat, 1, ranks, stream), ncclSuccess);
    EXPECT_EQ(ncclRecv(a.at(4), kCount, ncclFloat, 1, ranks, stream), ncclSuccess);
  });
  send(1, b.get());
  receive(1, b.get());
  EXPECT_TRUE(comes(1));
  EXPECT_EQ(kinds(), Texts{"ncclRecv races: writes what another thread of the launch reads"});
}

TEST_F(NcclChecks, SizesAndOrdersThatDiffer) {
  const Block a(256), b(256);
  clear(a.get(), 256);
  clear(b.get(), 256);
  auto* const values = static_cast<float*>(a.get());
  auto* const others = static_cast<float*>(b.get());
  const auto expect = [&](const std::function<void()>& calls, const Texts& texts) {
    machine().problems.clear();
    start_right();
    calls();
    EXPECT_FALSE(comes(0));
    EXPECT_EQ(found(), texts);
    for (ncclComm_t& one : ranks_) EXPECT_EQ(ncclCommAbort(std::exchange(one, nullptr)), ncclSuccess);
    finish();  // an aborted kernel ends
  };
  expect(
      [&] {
        send(0, values, 32);
        receive(1, others, 31);
      },
      {"NCCL: rank 1 expects a message of 31 elements from rank 0, and finds a message of 32 elements"});
  expect(
      [&] {
        group(0, [&](auto ranks, auto stream) {
          EXPECT_EQ(ncclAllGather(values, values, 8, ncclFloat, ranks, stream), ncclSuccess);
        });
        group(1, [&](auto ranks, auto stream) {
          EXPECT_EQ(ncclAllReduce(others, others, 8, ncclFloat, ncclSum, ranks, stream), ncclSuccess);
        });
      },
      {"NCCL: rank 0 expects collective 0, ncclAllGather of 8 elements from rank 1, and finds collective 0, "
       "ncclAllReduce of 8 elements",
       "NCCL: rank 1 expects collective 0, ncclAllReduce of 8 elements from rank 0, and finds collective 0, "
       "ncclAllGather of 8 elements"});
  expect(
      [&] {
        for (const int rank : {0, 1}) {
          float* const bucket = rank == 0 ? values : others;
          group(rank, [&](auto ranks, auto stream) {
            for (const int root : {rank, 1 - rank}) {
              EXPECT_EQ(ncclBroadcast(bucket + root, bucket + root, 1, ncclFloat, root, ranks, stream), ncclSuccess);
            }
          });
        }
      },
      {"NCCL: rank 0 expects collective 1, ncclBroadcast of 1 elements of rank 1 from rank 1, and finds collective "
       "0, "
       "ncclBroadcast of 1 elements of rank 1",
       "NCCL: rank 1 expects collective 1, ncclBroadcast of 1 elements of rank 0 from rank 0, and finds collective "
       "0, "
       "ncclBroadcast of 1 elements of rank 0"});
}

TEST_F(NcclChecks, ASendThatNobodyTakesDoesNotEnd) {
  start_right();
  const Block a(128), b(128);
  clear(a.get(), 128);
  send(0, a.get());
  EXPECT_FALSE(comes(0));
  std::thread aborts([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(ncclCommAbort(std::exchange(at(0), nullptr)), ncclSuccess);
  });
  EXPECT_EQ(cudaStreamSynchronize(on(0)), cudaSuccess) << "a host that waits leaves the GPU to others";
  aborts.join();
  EXPECT_EQ(asked(1), ncclRemoteError);
  EXPECT_STREQ(ncclGetLastError(at(1)), "rank 0 has closed its connection");
  EXPECT_EQ(found(), Texts{});
}

TEST_F(NcclChecks, ARankThatNeverSends) {
  start_right();
  const Block a(128), b(128);
  receive(1, b.get());
  kernel(kStore);
  ASSERT_EQ(launch_on(on(0), a.get()), cudaSuccess);
  EXPECT_FALSE(comes(1));
  EXPECT_TRUE(comes(0)) << "other streams go on";
  abort_all();
}

TEST_F(NcclChecks, ArgumentsThatNcclRefuses) {
  start_right();
  const Block a(128);
  EXPECT_EQ(ncclSend(a.get(), 1, ncclFloat, 2, at(0), on(0)), ncclInvalidArgument);
  EXPECT_STREQ(ncclGetLastError(at(0)), "ncclSend : invalid root 2 (root should be in the 0..2 range)");
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_STREQ(ncclGetLastError(at(0)), "ncclGroupEnd: not in a group call.");
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(ncclBroadcast(a.get(), a.get(), 1, ncclFloat, -1, at(0), on(0)), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument) << "the first error is that of the group";
  EXPECT_EQ(found(), Texts{});
  EXPECT_EQ(ncclSend(a.get(), 1, ncclDouble, 1, at(0), on(0)), ncclInvalidArgument);
  EXPECT_EQ(ncclSend(a.get(), 1, ncclFloat, 0, at(0), on(0)), ncclInvalidArgument);
  EXPECT_EQ(ncclAllGather(a.at(64), a.get(), 1, ncclFloat, at(0), on(0)), ncclInvalidArgument);
  EXPECT_EQ(ncclAllReduce(a.get(), a.get(), 1, ncclFloat, ncclMax, at(0), on(0)), ncclInvalidArgument);
  EXPECT_EQ(found(), (Texts{"ncclAllGather: another place for the result isn't known",
                            "ncclAllReduce: another operation than ncclSum isn't known",
                            "ncclSend: a message of a rank to itself isn't known",
                            "ncclSend: another type than ncclFloat isn't known"}));
}

TEST_F(NcclChecks, AStartThatFails) {
  EXPECT_EQ(start("a"), (std::array{ncclInvalidUsage, ncclInvalidUsage}));
  EXPECT_STREQ(ncclGetLastError(at(0)), "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 0 of a");
  for (ncclComm_t& one : ranks_) EXPECT_EQ(ncclCommAbort(std::exchange(one, nullptr)), ncclSuccess);
  EXPECT_EQ(start("b", 3), (std::array{ncclInternalError, ncclInternalError}));
  EXPECT_STREQ(ncclGetLastError(at(0)), "mismatch in rank count, 3 here and 2 on rank 0");
}

TEST_F(NcclChecks, FaultsThatTheEnvironmentAsksFor) {
  const Block a(128), b(128);
  clear(a.get(), 128);
  setenv("INTERPRETED_NCCL_FAILS", "1:2", 1);
  start_right();
  unsetenv("INTERPRETED_NCCL_FAILS");
  send(0, a.get());
  receive(1, b.get());
  EXPECT_TRUE(comes(0));
  send(0, a.get());
  EXPECT_EQ(ncclRecv(b.get(), kCount, ncclFloat, 0, at(1), on(1)), ncclInProgress);
  EXPECT_EQ(settled()[1], ncclSystemError);
  EXPECT_STREQ(ncclGetLastError(at(1)), "as INTERPRETED_NCCL_FAILS says");
  EXPECT_FALSE(comes(0));
  setenv("INTERPRETED_NCCL_FAILS", "0:0", 1);
  ncclUniqueId id;
  ncclComm_t none = nullptr;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  EXPECT_EQ(ncclCommInitRankConfig(&none, 2, id, 0, &config), ncclSystemError);
  unsetenv("INTERPRETED_NCCL_FAILS");
  setenv("INTERPRETED_NCCL_HANGS", "0:0", 1);
  EXPECT_EQ(ncclCommInitRankConfig(&none, 2, id, 0, &config), ncclInProgress);
  unsetenv("INTERPRETED_NCCL_HANGS");
  ncclResult_t state = ncclSuccess;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(ncclCommGetAsyncError(none, &state), ncclSuccess);
  EXPECT_EQ(state, ncclInProgress);
  EXPECT_EQ(ncclCommAbort(none), ncclSuccess);
  EXPECT_EQ(found(), Texts{});
  abort_all();
}

TEST_F(NcclChecks, WhereNobodyHearsThatARankIsGone) {
  setenv("INTERPRETED_NCCL_DEAF", "1", 1);
  start_right();
  unsetenv("INTERPRETED_NCCL_DEAF");
  const Block a(128);
  clear(a.get(), 128);
  send(1, a.get());
  EXPECT_EQ(ncclCommAbort(std::exchange(at(0), nullptr)), ncclSuccess);
  EXPECT_FALSE(comes(1));
  EXPECT_EQ(asked(1), ncclSuccess);
  EXPECT_EQ(found(), Texts{});
  abort_all();
}

TEST_F(NcclChecks, AThreadThatIsOnAnotherGpu) {
  const Block block(128);
  kernel(kStore);
  std::thread([&] {
    (void)cudaSetDevice(1);
    EXPECT_EQ(launch(block.get()), cudaErrorInvalidResourceHandle);
  }).join();
  EXPECT_EQ(found(), (Texts{"a kernel's launch on a thread whose GPU is 1, where the process's is 0",
                            "cudaSetDevice on a thread whose GPU is 1, where the process's is 0"}));
}

TEST_F(NcclChecks, AnEndOfBoth) {
  start_right();
  EXPECT_EQ(ncclCommFinalize(at(0)), ncclInProgress);
  EXPECT_EQ(settled()[0], ncclInProgress) << "the other rank isn't at its end";
  EXPECT_EQ(ncclCommFinalize(at(1)), ncclInProgress);
  EXPECT_EQ(settled(), (std::array{ncclSuccess, ncclSuccess}));
  for (ncclComm_t& one : ranks_) EXPECT_EQ(ncclCommDestroy(std::exchange(one, nullptr)), ncclSuccess);
  EXPECT_EQ(found(), Texts{});
  start_right();
  EXPECT_EQ(ncclCommDestroy(std::exchange(at(0), nullptr)), ncclSuccess);
  EXPECT_EQ(found(), Texts{"ncclCommDestroy before ncclCommFinalize is over"});
}

}  // namespace lockstep::ptx
