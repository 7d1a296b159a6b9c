// The module's host code on a machine without a GPU: the calls that must fail do so with their place, and leave nothing
// behind. With a GPU there is nothing here to see, and the tests are skipped.
#include <gtest/gtest.h>

#include "backend/cuda/cuda_gpu.hpp"
#include "backend/cuda/gpu_queue.hpp"
#include "backend/gpu/driver.hpp"
#include "comm/nccl_group.hpp"
#include "cuda/host_gpu.hpp"
#include "lockstep/error.hpp"

namespace lockstep {

namespace {

using std::chrono::milliseconds;

const backend::GpuPlace kPlace{"node7", 3, "GPU 1 (a card, 0000:3b:00.0)", 120, "relu 'first'"};
constexpr const char* kWhere = "node7, rank 3, GPU 1 (a card, 0000:3b:00.0), step 120, relu 'first': ";

class HostCalls : public testing::Test {
 protected:
  void SetUp() override {
    if (backend::ask_driver().state == backend::DriverState::ready) GTEST_SKIP() << "there is a GPU";
  }
};

template <class Body>
std::string refusal(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::infrastructure);
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_F(HostCalls, AGpuThatIsNotThere) {
  const std::string message = refusal([] { const backend::CudaGpu gpu(1, kPlace); });
  EXPECT_TRUE(message.starts_with(std::string(kWhere) + "cudaSetDevice(ordinal_) failed with ")) << message;
}

TEST_F(HostCalls, HandlesAreNotMade) {
  const std::string message = refusal([] { (void)backend::make_stream(kPlace); });
  EXPECT_TRUE(message.starts_with(std::string(kWhere) + "cudaStreamCreateWithFlags(")) << message;
}

TEST_F(HostCalls, ALaunchThatCannotBe) {
  const std::string message = refusal([] { backend::check_gpu(cudaErrorInvalidConfiguration, "the launch", kPlace); });
  EXPECT_EQ(message, std::string(kWhere) + "the launch failed with 9: invalid configuration argument");
}

TEST_F(HostCalls, EachLibrarySaysWhatIsWrong) {
  EXPECT_EQ(refusal([] { backend::check_gpu(CUBLAS_STATUS_NOT_SUPPORTED, "a", kPlace); }),
            std::string(kWhere) + "a failed with 15: the requested functionality is not supported");
  EXPECT_EQ(refusal([] { backend::check_gpu(CUDNN_STATUS_BAD_PARAM, "b", kPlace); }),
            std::string(kWhere) + "b failed with 2000: CUDNN_STATUS_BAD_PARAM");
}

TEST_F(HostCalls, NcclEndsOnEveryRankInsteadOfHanging) {
  run_in_threads(2, [](Communicator& ranks) {
    const std::string message = refusal([&] {
      backend::HostGpu gpu;  // nothing is asked of it
      const comm::NcclGroup group(ranks, gpu, kPlace, milliseconds(20'000));
    });
    EXPECT_TRUE(message.starts_with(std::string(kWhere) + "ncclCommInitRankConfig failed with ")) << message;
  });
}

}  // namespace lockstep
