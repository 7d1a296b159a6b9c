#include <gtest/gtest.h>

#include "backend/device.hpp"

namespace lockstep::backend {

TEST(CpuInfo, NamesTheInstructionSetAndTheLibrary) {
  const DeviceInfo info = cpu_info();
  EXPECT_FALSE(info.isa.starts_with("isa ")) << info.isa << ": give it its name in cpu_info.cpp";
  EXPECT_TRUE(info.libraries.starts_with("oneDNN ")) << info.libraries;
}

}  // namespace lockstep::backend
