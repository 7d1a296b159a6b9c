#include "device/cpu/cpu_info.hpp"

#include <gtest/gtest.h>

#include "device/device.hpp"

namespace lockstep::device {

TEST(CpuInfo, NamesTheInstructionSetAndTheLibrary) {
  const DeviceInfo info = cpu_info();
  EXPECT_FALSE(info.isa.starts_with("isa ")) << info.isa << ": give it its name in cpu_info.cpp";
  EXPECT_TRUE(info.libraries.starts_with("oneDNN ")) << info.libraries;
  EXPECT_EQ(info.multiplies_bf16, multiplies_bf16(dnnl::get_effective_cpu_isa()));
}

TEST(CpuInfo, Bfloat16IsMultipliedFromAvx512Bf16On) {
  using Isa = dnnl::cpu_isa;
  for (const Isa isa : {Isa::sse41, Isa::avx2, Isa::avx2_vnni, Isa::avx512_core, Isa::avx512_core_vnni}) {
    EXPECT_FALSE(multiplies_bf16(isa)) << std::hex << static_cast<unsigned>(isa);
  }
  for (const Isa isa : {Isa::avx512_core_bf16, Isa::avx512_core_amx}) EXPECT_TRUE(multiplies_bf16(isa));
  EXPECT_TRUE(has_isa(Isa::avx512_core, Isa::avx2));
  EXPECT_FALSE(has_isa(Isa::avx2, Isa::avx512_core));
}

}  // namespace lockstep::device
