// Where a host keeps what can be had again, and how much of it.
#include "core/cache_directory.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "lockstep/error.hpp"

namespace lockstep {
namespace {

/// Sets a variable during its lifetime.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value, 1);
  }
  ~Variable() { setenv(name_, before_.c_str(), 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::string before_;
};

TEST(CacheDirectory, IsTheEnvironments) {
  const Variable home("HOME", "/home/u"), xdg("XDG_CACHE_HOME", ""), own("LOCKSTEP_CACHE", "");
  EXPECT_EQ(cache_directory(), "/home/u/.cache/lockstep");
  const Variable set_xdg("XDG_CACHE_HOME", "/cache");
  EXPECT_EQ(cache_directory(), "/cache/lockstep");
  const Variable set_own("LOCKSTEP_CACHE", "/mine");
  EXPECT_EQ(cache_directory(), "/mine");
  const Variable set_none("LOCKSTEP_CACHE", "none");
  EXPECT_EQ(cache_directory(), "");
  const Variable no_own("LOCKSTEP_CACHE", ""), no_xdg("XDG_CACHE_HOME", ""), no_home("HOME", "/");
  EXPECT_EQ(cache_directory(), "");
}

TEST(CacheLimit, IsBytesWithAUnit) {
  const Variable unset("LOCKSTEP_CACHE_LIMIT", "");
  EXPECT_EQ(cache_limit(), 0U);
  const Variable bytes("LOCKSTEP_CACHE_LIMIT", "123456");
  EXPECT_EQ(cache_limit(), 123456U);
  const Variable gibibytes("LOCKSTEP_CACHE_LIMIT", "20GiB");
  EXPECT_EQ(cache_limit(), 20ULL << 30);
  for (const char* const wrong : {"much", "20GB", "GiB", "-1", "99999999TiB"}) {
    const Variable limit("LOCKSTEP_CACHE_LIMIT", wrong);
    try {
      (void)cache_limit();
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::configuration);
      EXPECT_EQ(std::string(error.what()), std::string("LOCKSTEP_CACHE_LIMIT: expected bytes, as in 20GiB or 500MiB, "
                                                       "found '") +
                                               wrong + "'");
    }
  }
}

}  // namespace
}  // namespace lockstep
