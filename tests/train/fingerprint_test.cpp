#include "train/fingerprint.hpp"

#include <gtest/gtest.h>

#include "core/digest.hpp"
#include "exec/cpu_device.hpp"
#include "lockstep/version.hpp"

namespace lockstep::train {

TEST(Fingerprint, IsTheSameEachTimeAndNamesVersions) {
  const exec::CpuDevice device;
  const Fingerprint first = take_fingerprint(device), second = take_fingerprint(device);
  EXPECT_EQ(first.text(), second.text());
  EXPECT_EQ(first.kernels.size(), 16u);
  EXPECT_EQ(first.kernels.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(first.text(), "kernels " + first.kernels + ", " + first.libraries + ", builds " +
                              sha256(first.builds).substr(0, 8) + ", lockstep " + std::string(version()));
  EXPECT_LT(first.text().size(), 128u);
}

TEST(Fingerprint, TellsARunThatMultipliesBfloat16FromOneThatUpcasts) {
  device::DeviceInfo info = device::cpu_info();
  const exec::CpuDevice device(info);
  const bool native = info.multiplies_bf16;
  const std::string plain = take_fingerprint(device).kernels;
  EXPECT_EQ(take_fingerprint(device, DType::bf16).kernels != plain, native) << info.isa;
  EXPECT_EQ(take_fingerprint(device, DType::f16).kernels, plain);
  info.multiplies_bf16 = false;
  EXPECT_EQ(take_fingerprint(exec::CpuDevice(info), DType::bf16).kernels, plain);
}

}  // namespace lockstep::train
