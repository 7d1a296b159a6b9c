#include "core/untrusted.hpp"

#include <gtest/gtest.h>

#include <string>

namespace lockstep {

TEST(PlainName, IsOneComponentOfAPath) {
  for (const char* name : {"model.safetensors", "...", "..a", " ", "a\\b"}) EXPECT_TRUE(is_plain_name(name)) << name;
  for (const char* name : {"", ".", "..", "/", "a/b", "/a", "a/", "../a"}) EXPECT_FALSE(is_plain_name(name)) << name;
  EXPECT_FALSE(is_plain_name(std::string_view("a\0b", 3)));
  EXPECT_TRUE(is_plain_name(std::string(255, 'a')));
  EXPECT_FALSE(is_plain_name(std::string(256, 'a')));
}

}  // namespace lockstep
