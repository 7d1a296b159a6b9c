// For tests that plant a fault: small kernels, shortcuts to launch them, and the problems that were reported.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

#include "cuda/interpreter/machine.hpp"

extern "C" void __cudaRegisterFunction(void** handle, const char* host, char* device, const char* name, int limit,
                                       uint3* thread, uint3* block, dim3* block_size, dim3* grid_size, int* warp);

namespace lockstep::ptx {

class Planted : public testing::Test {
 protected:
  static constexpr const char* kStore = "st.global.u32 [%rd3], %r1;\n";
  static constexpr const char* kLoad = "ld.global.u32 %r3, [%rd3];\n";

  void SetUp() override {
    machine().problems.clear();
    machine().draw = Draw(0);
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
  }
  void TearDown() override {
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    machine().problems.clear();
  }

  /// A kernel "planted", with a pointer and a number as parameters, and these instructions, one per line. %rd1 is the
  /// pointer to global memory, %rd2 the number, %r1 the thread, %r2 the block; %rd3 is the address of the thread's
  /// four-byte element.
  /// `outside`: stands before it.
  static void kernel(const std::string& body, const std::string& outside = "") {
    machine().load(R"(.version 9.0
.target sm_90
.address_size 64
)" + outside + R"(.visible .entry planted(
.param .u64 planted_param_0,
.param .u64 planted_param_1
)
.maxntid 256, 1, 1
{
.reg .pred %p<8>;
.reg .b16 %rs<8>;
.reg .b32 %r<16>;
.reg .b64 %rd<16>;
.reg .f32 %f<8>;
ld.param.u64 %rd1, [planted_param_0];
ld.param.u64 %rd2, [planted_param_1];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd3, %rd1, %rd3;
)" + body + "ret;\n}\n",
                   "planted.ptx");
    static const char stub = 0;
    __cudaRegisterFunction(nullptr, &stub, nullptr, "planted", 0, nullptr, nullptr, nullptr, nullptr, nullptr);
    stub_ = &stub;
  }
  cudaError_t launch(void* memory, u64 number = 0, unsigned blocks = 1, unsigned threads = 32) const {
    return launch_on(stream_, memory, number, blocks, threads);
  }
  static cudaError_t launch_on(cudaStream_t stream, void* memory, u64 number = 0, unsigned blocks = 1,
                               unsigned threads = 32, std::size_t shared_bytes = 0) {
    void* arguments[] = {&memory, &number};
    return cudaLaunchKernel(stub_, blocks, threads, arguments, shared_bytes, stream);
  }
  cudaError_t run(void* memory, u64 number = 0, unsigned blocks = 1, unsigned threads = 32) const {
    const cudaError_t launched = launch(memory, number, blocks, threads);
    return launched == cudaSuccess ? cudaStreamSynchronize(stream_) : launched;
  }
  void clear(void* memory, std::size_t bytes) const {
    EXPECT_EQ(cudaMemsetAsync(memory, 0, bytes, stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  }

  /// The full texts of the problems found, in alphabetical order.
  static std::vector<std::string> found() {
    std::vector<std::string> texts;
    for (const auto& [what, problem] : machine().problems.all()) texts.push_back(problem.first);
    return texts;
  }
  using Texts = std::vector<std::string>;

  cudaStream_t stream_ = nullptr;

 private:
  static inline const void* stub_ = nullptr;
};

/// Memory of the GPU, or pinned memory.
class Block {
 public:
  explicit Block(std::size_t bytes, bool pinned = false) : pinned_(pinned) {
    EXPECT_EQ(pinned ? cudaHostAlloc(&memory_, bytes, cudaHostAllocDefault) : cudaMalloc(&memory_, bytes), cudaSuccess);
    number_ = machine().memory.find(reinterpret_cast<u64>(memory_), 1)->number;
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { free(); }
  void free() {
    EXPECT_EQ(pinned_ ? cudaFreeHost(memory_) : cudaFree(memory_), cudaSuccess);
    memory_ = nullptr;
  }
  [[nodiscard]] void* get() const { return memory_; }
  [[nodiscard]] void* at(std::size_t byte) const { return static_cast<u8*>(memory_) + byte; }
  /// The number in "GPU allocation 3 of 64 bytes".
  [[nodiscard]] std::string number() const { return std::to_string(number_); }

 private:
  void* memory_ = nullptr;
  bool pinned_;
  u32 number_ = 0;
};

}  // namespace lockstep::ptx
