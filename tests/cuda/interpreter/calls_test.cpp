// Each check of the host's calls to the GPU finds a planted fault: copies, waits between streams, recordings, leaks.
#include <algorithm>
#include <cstring>

#include "cuda/interpreter/planted.hpp"

namespace lockstep::ptx {

namespace {

/// Adds a second stream and an event.
class CallChecks : public Planted {
 protected:
  void SetUp() override {
    Planted::SetUp();
    ASSERT_EQ(cudaStreamCreateWithFlags(&other_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), cudaSuccess);
  }
  void TearDown() override {
    EXPECT_EQ(cudaStreamDestroy(other_), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(event_), cudaSuccess);
    Planted::TearDown();
  }
  [[nodiscard]] static std::string said() { return found().empty() ? "" : found()[0]; }

  cudaStream_t other_ = nullptr;
  cudaEvent_t event_ = nullptr;
};

}  // namespace

TEST_F(CallChecks, StreamsAreLazy) {
  const Block block(128), pinned(128, true);
  std::memset(pinned.get(), 7, 128);
  kernel(kStore);
  ASSERT_EQ(launch(block.get()), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(pinned.get(), block.get(), 128, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
  EXPECT_EQ(static_cast<const u32*>(pinned.get())[5], 0xa7a7a7a7U) << "nobody has waited";
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(static_cast<const u32*>(pinned.get())[5], 5U);
  EXPECT_EQ(found(), Texts{});
}

TEST_F(CallChecks, TheHostWritesWhatACopyHasYetToRead) {
  const Block block(128), pinned(128, true);
  for (const bool waits : {true, false}) {
    std::memset(pinned.get(), 7, 128);
    ASSERT_EQ(cudaMemcpyAsync(block.get(), pinned.get(), 128, cudaMemcpyHostToDevice, stream_), cudaSuccess);
    if (waits) {
      ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    }
    std::memset(pinned.at(64), 8, 1);
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    EXPECT_EQ(said(), waits ? ""
                            : "misses a wait: the host writes what a copy to the GPU has yet to read; 0 bytes from the "
                              "start of pinned allocation " +
                                  pinned.number() + " of 128 bytes, 128 of them");
  }
}

TEST_F(CallChecks, WhatACopyBringsIsNotComparedWithWhatWasThere) {
  const Block block(128), pinned(128, true);
  clear(block.get(), 128);
  ASSERT_EQ(cudaMemcpyAsync(pinned.get(), block.get(), 128, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(block.get(), pinned.get(), 128, cudaMemcpyHostToDevice, stream_), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(pinned.get(), block.get(), 128, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(found(), Texts{});
  EXPECT_EQ(static_cast<const u32*>(pinned.get())[5], 0U);
}

TEST_F(CallChecks, MemoryIsFreedWhileACopyUsesIt) {
  const Block block(128);
  for (const bool pinned : {true, false}) {
    for (const bool waits : {true, false}) {
      Block from(128, pinned);
      const cudaMemcpyKind kind = pinned ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice;
      ASSERT_EQ(cudaMemcpyAsync(block.get(), from.get(), 128, kind, stream_), cudaSuccess);
      if (waits) {
        ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
      }
      from.free();
      const std::string where = (pinned ? "pinned allocation " : "GPU allocation ") + from.number();
      EXPECT_EQ(said(), waits ? ""
                              : std::string(pinned ? "cudaFreeHost" : "cudaFree") +
                                    " misses a wait: work that the host hasn't waited for uses the memory; 0 bytes "
                                    "from the start of " +
                                    where + " of 128 bytes, 1 of them");
      machine().problems.clear();
    }
  }
}

TEST_F(CallChecks, AFreeIsNoWait) {
  const Block block(128), copy(128);
  Block other(128);
  kernel(kStore);
  ASSERT_EQ(launch(block.get()), cudaSuccess);
  other.free();
  ASSERT_EQ(cudaMemcpyAsync(copy.get(), block.get(), 128, cudaMemcpyDeviceToDevice, other_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(other_), cudaSuccess);
  EXPECT_EQ(found(), Texts{"a copy on the GPU misses a wait: reads what work that may run beside it writes; 0 bytes "
                           "from the start of GPU allocation " +
                           block.number() + " of 128 bytes, 128 of them"});
}

TEST_F(CallChecks, MissingWaitsBetweenStreams) {
  for (const u32 seed : {0U, 1U, 2U, 3U}) {  // in either order
    machine().draw = Draw(seed);
    for (const bool waits : {true, false}) {
      const Block block(128), copy(128);
      kernel(kStore);
      ASSERT_EQ(launch(block.get()), cudaSuccess);
      ASSERT_EQ(cudaEventRecord(event_, stream_), cudaSuccess);
      if (waits) {
        ASSERT_EQ(cudaStreamWaitEvent(other_, event_, 0), cudaSuccess);
      }
      ASSERT_EQ(cudaMemcpyAsync(copy.get(), block.get(), 128, cudaMemcpyDeviceToDevice, other_), cudaSuccess);
      ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
      if (waits) {
        EXPECT_EQ(found(), Texts{});
      } else {
        ASSERT_EQ(found().size(), 1U);
        EXPECT_NE(said().find("misses a wait: "), std::string::npos) << said();
      }
      machine().problems.clear();
    }
  }
}

TEST_F(CallChecks, AMissingWaitForOneOfTwoReaders) {
  const Block block(4096), copies(8192);
  clear(block.get(), 4096);
  ASSERT_EQ(cudaMemcpyAsync(copies.get(), block.get(), 4096, cudaMemcpyDeviceToDevice, stream_), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(copies.at(4096), block.get(), 4096, cudaMemcpyDeviceToDevice, other_), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(block.get(), 1, 4096, other_), cudaSuccess);  // and the first stream?
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(said().substr(0, said().find(';')),
            "a memset misses a wait: writes what work that may run beside it reads");
}

TEST_F(CallChecks, TheHostsOwnWaitOrdersToo) {
  const Block block(128);
  kernel(kStore);
  ASSERT_EQ(launch(block.get()), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event_, stream_), cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(event_), cudaSuccess);
  ASSERT_EQ(launch_on(other_, block.get()), cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(found(), Texts{});
}

TEST_F(CallChecks, WrongKindsOfCopies) {
  const Block block(128), pinned(128, true);
  clear(block.get(), 128);
  const auto number = [](const Block& one, const char* kind) {
    return std::string(kind) + " allocation " + one.number() + " of 128 bytes, 128 of them";
  };
  ASSERT_EQ(cudaMemcpyAsync(block.get(), pinned.get(), 128, cudaMemcpyDeviceToDevice, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(found(), Texts{"a copy on the GPU reads memory of another kind than it says; 0 bytes from the start of " +
                           number(pinned, "pinned")});
  machine().problems.clear();
  ASSERT_EQ(cudaMemcpyAsync(block.get(), pinned.get(), 128, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(found().size(), 2U);
  machine().problems.clear();
  EXPECT_EQ(cudaMemcpyAsync(block.get(), pinned.get(), 128, cudaMemcpyDefault, stream_),
            cudaErrorInvalidMemcpyDirection);
  EXPECT_EQ(found(), Texts{"cudaMemcpyAsync: kind 4 isn't known"});
  machine().problems.clear();
  u32 here = 0;  // not pinned: the copy would wait, or read what is no longer there
  ASSERT_EQ(cudaMemcpyAsync(block.get(), &here, 4, cudaMemcpyHostToDevice, stream_), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorIllegalAddress);
  EXPECT_EQ(found(), Texts{"a copy to the GPU reads outside of memory; 4 bytes in no allocation"});
  machine().problems.clear();
}

TEST_F(CallChecks, CopiesBeyondTheEndAndFreedMemory) {
  const Block block(128);
  ASSERT_EQ(cudaMemsetAsync(block.at(64), 0, 65, stream_), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaErrorIllegalAddress);
  EXPECT_EQ(found(), Texts{"a memset writes outside of memory; 65 bytes 64 bytes from the start of GPU allocation " +
                           block.number() + " of 128 bytes, 65 of them"});
  machine().problems.clear();
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaErrorInvalidValue);
  EXPECT_NE(said().find("cudaFree: second free of GPU allocation "), std::string::npos);
  machine().problems.clear();
  EXPECT_EQ(cudaFreeHost(block.get()), cudaErrorInvalidValue);
  EXPECT_EQ(found(), Texts{"cudaFreeHost: free of GPU allocation " + block.number() + " as pinned memory"});
}

TEST_F(CallChecks, GraphsDoWhatWasRecorded) {
  const Block block(128), pinned(128, true);
  kernel(kStore);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t runnable = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  ASSERT_EQ(launch(block.get()), cudaSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&runnable, graph, 0), cudaSuccess);
  clear(block.get(), 128);
  ASSERT_EQ(cudaGraphLaunch(runnable, stream_), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(pinned.get(), block.get(), 128, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(static_cast<const u32*>(pinned.get())[9], 9U);
  EXPECT_EQ(cudaGraphExecDestroy(runnable), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(found(), Texts{});
}

TEST_F(CallChecks, CallsThatSpoilARecording) {
  const Block block(128);
  void* memory = nullptr;
  const std::vector<std::pair<const char*, std::function<cudaError_t()>>> calls = {
      {"cudaMalloc while a graph is recorded", [&] { return cudaMalloc(&memory, 8); }},
      {"cudaHostAlloc while a graph is recorded", [&] { return cudaHostAlloc(&memory, 8, 0); }},
      {"cudaFree while a graph is recorded", [&] { return cudaFree(block.get()); }},
      {"cudaDeviceSynchronize while a graph is recorded", [] { return cudaDeviceSynchronize(); }},
      {"cudaStreamSynchronize while a graph is recorded", [&] { return cudaStreamSynchronize(other_); }},
      {"cudaEventSynchronize while a graph is recorded", [&] { return cudaEventSynchronize(event_); }},
      {"cudaEventQuery while a graph is recorded", [&] { return cudaEventQuery(event_); }},
      {"cudaEventRecord on a stream that is recorded isn't known", [&] { return cudaEventRecord(event_, stream_); }},
      {"cudaStreamWaitEvent on a stream that is recorded isn't known",
       [&] { return cudaStreamWaitEvent(stream_, event_, 0); }},
  };
  for (const auto& [text, call] : calls) {
    ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(call(), cudaErrorStreamCaptureUnsupported) << text;
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated) << text;
    EXPECT_EQ(found(), Texts{text});
    machine().problems.clear();
  }
}

TEST_F(CallChecks, FlagsThatAreNotKnown) {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamDefault), cudaErrorInvalidValue);
  EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventDefault), cudaErrorInvalidValue);
  EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaErrorInvalidValue);
  EXPECT_EQ(found(), (Texts{"cudaEventCreateWithFlags: flags 0x0 aren't known, only 0x2 are",
                            "cudaStreamBeginCapture: flags 0x0 aren't known, only 0x1 are",
                            "cudaStreamCreateWithFlags: flags 0x0 aren't known, only 0x1 are"}));
}

TEST_F(CallChecks, TheDefaultStreamAndGridsThatCannotBe) {
  const Block block(128);
  EXPECT_EQ(cudaMemsetAsync(block.get(), 0, 128, nullptr), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(found(), Texts{"cudaMemsetAsync: the default stream"});
  machine().problems.clear();
  kernel("");
  EXPECT_EQ(launch(block.get(), 0, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch(block.get(), 0, 1, 257), cudaErrorInvalidConfiguration);
  EXPECT_EQ(found(),
            (Texts{"planted: a launch of 0 x 1 x 1 blocks of 32 x 1 x 1 threads with 0 bytes of shared memory",
                   "planted: a launch of 1 x 1 x 1 blocks of 257 x 1 x 1 threads with 0 bytes of shared memory"}));
}

TEST_F(CallChecks, WhatIsLeftAtTheEnd) {
  Block block(100);
  machine().look_for_leaks();
  EXPECT_EQ(found(), (Texts{"1 allocations of 100 bytes are left at the end, the first is GPU allocation " +
                                block.number() + " of 100 bytes",
                            "1 events are left at the end", "2 streams are left at the end"}));
}

}  // namespace lockstep::ptx
