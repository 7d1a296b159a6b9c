#include "core/files.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace lockstep {

TEST(WholeFile, HasEveryByte) {
  std::string path = testing::TempDir() + "whole-file-XXXXXX";
  const int fd = mkstemp(path.data());
  ASSERT_GE(fd, 0);
  close(fd);
  EXPECT_EQ(read_whole_file(path), "");
  const std::string bytes("a\0\r\n\xff", 5);
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_EQ(read_whole_file(path), bytes);
  unlink(path.c_str());
  EXPECT_EQ(read_whole_file(path), std::nullopt);
}

TEST(WholeFile, OfNoKnownSize) {
  EXPECT_NE(read_whole_file("/proc/self/status").value().find("Pid:"), std::string::npos);
}

}  // namespace lockstep
