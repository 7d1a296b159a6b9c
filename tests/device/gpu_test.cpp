// What is reported about GPUs, and files that are not modules.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "device/gpu/cuda_module.hpp"
#include "device/gpu/driver.hpp"
#include "device/gpu/gpu_place.hpp"
#include "lockstep/version.hpp"

namespace lockstep::device {

TEST(Gpu, ItsText) {
  const GpuInfo gpu{0, "NVIDIA H100 80GB HBM3", std::int64_t{85'520'809'984}, 9, 0, "0000:3b:00.0"};
  EXPECT_EQ(text_of(gpu), "NVIDIA H100 80GB HBM3, 79.6 GiB, compute capability 9.0, 0000:3b:00.0");
  EXPECT_EQ(cuda_version_text(13000), "13.0");
  EXPECT_EQ(cuda_version_text(12040), "12.4");
}

TEST(Gpu, ItsPeakIsThatOfItsDataSheet) {
  GpuInfo gpu;
  EXPECT_EQ(peak_flops(gpu), 0);  // the driver did not report its size
  gpu.multiprocessors = 132;
  gpu.clock_mhz = 1980;
  gpu.major = 9;
  EXPECT_NEAR(peak_flops(gpu), 67e12, 0.5e12);  // H100 SXM, fp32
  gpu.clock_mhz = 1830;                         // the clock at which the data sheet counts tensor cores
  EXPECT_NEAR(peak_flops(gpu, Precision::bf16), 989e12, 5e12);
  EXPECT_NEAR(peak_flops(gpu, Precision::tf32), 494.7e12, 3e12);
  gpu.multiprocessors = 108;
  gpu.clock_mhz = 1410;
  gpu.major = 8;
  EXPECT_NEAR(peak_flops(gpu), 19.5e12, 0.1e12);  // A100, fp32
  EXPECT_NEAR(peak_flops(gpu, Precision::fp16), 312e12, 1e12);
  EXPECT_NEAR(peak_flops(gpu, Precision::tf32), 156e12, 1e12);
  gpu.minor = 9;
  EXPECT_EQ(peak_flops(gpu, Precision::bf16), 0);  // data sheets of this generation do not agree on it
}

TEST(GpuPlace, AnErrorNamesHostRankGpuStepOpAndCall) {
  const GpuPlace place{"node7", 3, "GPU 1 (NVIDIA H100, 0000:3b:00.0)", 120, "layer_norm 'block3.norm1'"};
  const Error error = gpu_error(place, "the launch of a kernel", 700, "an illegal memory access was encountered");
  EXPECT_EQ(error.code(), ExitCode::infrastructure);
  EXPECT_STREQ(error.what(),
               "node7, rank 3, GPU 1 (NVIDIA H100, 0000:3b:00.0), step 120, layer_norm 'block3.norm1': the launch of a "
               "kernel failed with 700: an illegal memory access was encountered");
}

TEST(GpuTrail, NamesWhatMayHaveBeenAtFault) {
  GpuTrail trail({"node7", 0, "GPU 0"});
  EXPECT_EQ(trail.place().text(), "node7, rank 0, GPU 0");
  trail.enter(2, 0, "conv 'a'");
  EXPECT_EQ(trail.place().text(), "node7, rank 0, GPU 0, step 0, conv 'a'");
  trail.enter(1, 7, "inputs");
  EXPECT_EQ(trail.place().text(), "node7, rank 0, GPU 0, step 7, inputs");
  trail.enter(2, 7, "relu 'b'");
  EXPECT_EQ(trail.place().text(), "node7, rank 0, GPU 0, step 7, inputs or relu 'b'");
}

TEST(GpuPlace, BeforeTheFirstStep) {
  EXPECT_EQ((GpuPlace{.host = "node7", .rank = 2, .gpu = "GPU 0"}).text(), "node7, rank 2, GPU 0");
}

TEST(GpuPlace, OutsideOfAnyOp) {
  EXPECT_EQ((GpuPlace{"node7", 0, "GPU 0", 0, ""}).text(), "node7, rank 0, GPU 0, step 0");
}

TEST(BuildId, IsSixteenDigits) {
  EXPECT_TRUE(std::regex_match(build_id(), std::regex("[0-9a-f]{16}"))) << build_id();
}

TEST(CudaModule, IsLookedForBesideTheProgramThenWhereItIsInstalled) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  EXPECT_EQ(module_paths(), (std::vector<std::string>{folder / "liblockstep_cuda.so",
                                                      folder.parent_path() / "lib/lockstep/liblockstep_cuda.so"}));
}

TEST(CudaModule, NoneThere) {
  const CudaModule module = open_module({"/nowhere/a.so", "/nowhere/b.so"});
  EXPECT_FALSE(module);
  EXPECT_EQ(module.problem,
            "expected the CUDA module, found none at /nowhere/a.so or /nowhere/b.so; build lockstep with -D "
            "LOCKSTEP_CUDA=ON");
}

TEST(CudaModule, AFileThatIsNoLibrary) {
  const std::string path = testing::TempDir() + "no_library.so";
  std::ofstream(path) << "text";
  const CudaModule module = open_module({path});
  EXPECT_FALSE(module);
  EXPECT_EQ(module.problem, fmt::format("expected a CUDA module that loads, found: {}: file too short; install the "
                                        "libraries of CUDA, cuDNN and NCCL, or name their folder in LD_LIBRARY_PATH",
                                        path));
}

TEST(CudaModule, AnotherLibrary) {
  const CudaModule module = open_module({OTHER_LIBRARY});
  EXPECT_FALSE(module);
  EXPECT_EQ(module.problem,
            std::string("expected lockstep's CUDA module at ") + OTHER_LIBRARY + ", found another library");
}

TEST(CudaModule, OfAnotherBuild) {
  const CudaModule module = open_module({OTHER_BUILD});
  EXPECT_FALSE(module);
  EXPECT_EQ(
      module.problem,
      fmt::format("expected a CUDA module of this build ({}), found one of build 0123456789abcdef at {}; build or "
                  "install both together",
                  build_id(), OTHER_BUILD));
}

TEST(CudaModule, OfThisBuild) {
  const CudaModule module = open_module({THIS_BUILD});
  EXPECT_TRUE(module) << module.problem;
  EXPECT_EQ(module.problem, "");
  EXPECT_EQ(module.path, THIS_BUILD);
  EXPECT_EQ(module.cuda_version, 13000);
}

}  // namespace lockstep::device
