// The module's host code on a machine without a GPU: calls that must fail do so and report their place, and leave
// nothing behind. With a GPU the tests are skipped.
#include <gtest/gtest.h>

#include "comm/transport/nccl_group.hpp"
#include "cuda/host_gpu.hpp"
#include "cuda/refusal.hpp"
#include "device/cuda/cuda_gpu.hpp"
#include "device/cuda/gpu_stream.hpp"
#include "device/cuda/lt_product.hpp"
#include "device/gpu/driver.hpp"
#include "lockstep/error.hpp"

namespace lockstep {

namespace {

using std::chrono::milliseconds;

const device::GpuPlace kPlace{"node7", 3, "GPU 1 (a card, 0000:3b:00.0)", 120, "relu 'first'"};
constexpr const char* kWhere = "node7, rank 3, GPU 1 (a card, 0000:3b:00.0), step 120, relu 'first': ";

class HostCalls : public testing::Test {
 protected:
  void SetUp() override {
    if (device::ask_driver().state == device::DriverState::ready) GTEST_SKIP() << "there is a GPU";
  }
};

}  // namespace

TEST_F(HostCalls, AGpuThatIsNotThere) {
  const std::string message = refusal([] { const device::CudaGpu gpu(1, kPlace); });
  EXPECT_TRUE(message.starts_with(std::string(kWhere) + "cudaSetDevice(ordinal_) failed with ")) << message;
}

TEST_F(HostCalls, HandlesAreNotMade) {
  const std::string message = refusal([] { (void)device::make_stream(kPlace); });
  EXPECT_TRUE(message.starts_with(std::string(kWhere) + "cudaStreamCreateWithFlags(")) << message;
}

TEST_F(HostCalls, ALaunchThatCannotBe) {
  const std::string message = refusal([] { device::check_gpu(cudaErrorInvalidConfiguration, "the launch", kPlace); });
  EXPECT_EQ(message, std::string(kWhere) + "the launch failed with 9: invalid configuration argument");
}

TEST_F(HostCalls, EachLibrarySaysWhatIsWrong) {
  EXPECT_EQ(refusal([] { device::check_gpu(CUBLAS_STATUS_NOT_SUPPORTED, "a", kPlace); }),
            std::string(kWhere) + "a failed with 15: the requested functionality is not supported");
  EXPECT_EQ(refusal([] { device::check_gpu(CUDNN_STATUS_BAD_PARAM, "b", kPlace); }),
            std::string(kWhere) + "b failed with 2000: CUDNN_STATUS_BAD_PARAM");
}

TEST_F(HostCalls, NcclEndsOnEveryRankInsteadOfHanging) {
  run_in_threads(2, [](Communicator& ranks) {
    const std::string message = refusal([&] {
      device::HostGpu gpu;  // never used
      const comm::NcclGroup group(ranks, gpu, kPlace, milliseconds(20'000));
    });
    EXPECT_TRUE(message.starts_with(kWhere)) << message;  // this rank's failure, or the other one's
    EXPECT_TRUE(message.find(std::string(kWhere) + "ncclCommInitRankConfig failed with ") != std::string::npos)
        << message;
  });
}

namespace {

template <class T>
T attribute(const Handle<device::LtMatmulDescTraits>& desc, cublasLtMatmulDescAttributes_t name) {
  T value{};
  std::size_t written = 0;
  EXPECT_EQ(cublasLtMatmulDescGetAttribute(desc.get(), name, &value, sizeof value, &written), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(written, sizeof value);
  return value;
}

}  // namespace

// The library accepts these calls even without a GPU; it refuses an attribute of the wrong size.
TEST(ProductDesc, SaysWhatAnEpilogueTakes) {
  using device::Epilogue;
  const device::ColumnProduct product{{16, 24, true}, {16, 5, false}};
  const auto desc = [&](Epilogue epilogue, DType bias = DType::f32) {
    return make_product_desc(product, {{DType::bf16, DType::bf16}, epilogue, bias}, kPlace);
  };
  const auto epilogue = [&](Epilogue of) {
    return attribute<cublasLtEpilogue_t>(desc(of), CUBLASLT_MATMUL_DESC_EPILOGUE);
  };
  EXPECT_EQ(epilogue(Epilogue::none), CUBLASLT_EPILOGUE_DEFAULT);
  EXPECT_EQ(epilogue(Epilogue::bias), CUBLASLT_EPILOGUE_BIAS);
  EXPECT_EQ(epilogue(Epilogue::gelu), CUBLASLT_EPILOGUE_GELU_AUX);
  EXPECT_EQ(epilogue(Epilogue::bias_gelu), CUBLASLT_EPILOGUE_GELU_AUX_BIAS);
  EXPECT_EQ(epilogue(Epilogue::gelu_gradient), CUBLASLT_EPILOGUE_DGELU);
  EXPECT_EQ(epilogue(Epilogue::sums_of_b), CUBLASLT_EPILOGUE_BGRADB);
  for (const Epilogue of : {Epilogue::gelu, Epilogue::bias_gelu, Epilogue::gelu_gradient}) {
    EXPECT_EQ(attribute<std::int64_t>(desc(of), CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD), 24);
  }
  const auto bias_type = [&](Epilogue of, DType bias) {
    return attribute<cudaDataType_t>(desc(of, bias), CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
  };
  EXPECT_EQ(bias_type(Epilogue::bias_gelu, DType::f32), CUDA_R_32F);
  EXPECT_EQ(bias_type(Epilogue::bias_gelu, DType::bf16), CUDA_R_16BF);
  EXPECT_EQ(bias_type(Epilogue::bias_gelu, DType::f16), CUDA_R_16F);
}

}  // namespace lockstep
