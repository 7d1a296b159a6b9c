#include "run/train/fingerprint.hpp"

#include <gtest/gtest.h>

#include "lockstep/version.hpp"
#include "run/train/library_results.hpp"
#include "step/exec/cpu_device.hpp"

namespace lockstep::train {

TEST(Fingerprint, IsTheSameEachTimeAndNamesVersions) {
  const exec::CpuDevice device;
  const Fingerprint first = take_fingerprint(device), second = take_fingerprint(device);
  EXPECT_EQ(first.text(), second.text());
  EXPECT_EQ(first.kernels.size(), 16u);
  EXPECT_EQ(first.kernels.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(first.text(), "kernels " + first.kernels + ", " + first.libraries + ", math " + first.math + ", jpeg " +
                              first.jpeg + ", lockstep " + std::string(version()));
  EXPECT_EQ(first.math.size(), 8U);
  EXPECT_EQ(first.jpeg.size(), 8U);
  EXPECT_EQ(first.math, hash_of_math());
  EXPECT_EQ(first.jpeg, hash_of_jpeg());
  EXPECT_EQ(first.text().find(library_builds()), std::string::npos)
      << "another build that computes the same is as good";
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

TEST(Fingerprint, WhatDiffersIsToldInTwoLines) {
  EXPECT_EQ(differences("kernels 1, math 2, lockstep 1, avx2; libdnnl a, libm b",
                        "kernels 1, math 3, lockstep 1, avx2; libdnnl a, libm c"),
            "\n  then: math 2, libm b\n  now: math 3, libm c");
}

}  // namespace lockstep::train
