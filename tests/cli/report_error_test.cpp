// Each kind of error ends the program with its code from docs/exit-codes.md. 70 can be tested only here: no input of a
// user should lead to it.
#include "cli/report_error.hpp"

#include <gtest/gtest.h>

#include <new>
#include <system_error>

#include "lockstep/error.hpp"

namespace lockstep::cli {
namespace {

/// The exit code, and the text on stderr.
std::pair<int, std::string> reported(const std::exception& error) {
  testing::internal::CaptureStderr();
  const int code = report(error);
  return {code, testing::internal::GetCapturedStderr()};
}

TEST(ReportError, TheCodeIsTheErrors) {
  for (const int code : {1, 64, 65, 70, 73, 76, 78}) {
    EXPECT_EQ(reported(Error(static_cast<ExitCode>(code), "why")), std::pair(code, std::string("lockstep: why\n")));
  }
}

TEST(ReportError, AnInvariantThatDoesNotHoldIs70) {
  try {
    LOCKSTEP_CHECK(1 + 1 == 3, "arithmetic");
    FAIL();
  } catch (const Error& error) {
    const auto [code, text] = reported(error);
    EXPECT_EQ(code, 70);
    EXPECT_NE(text.find("arithmetic: this must hold: 1 + 1 == 3. This is a bug in lockstep; please report it.\n"),
              std::string::npos)
        << text;
  }
}

TEST(ReportError, WhatNobodyThoughtOfIs70) {
  EXPECT_EQ(reported(std::runtime_error("odd")), std::pair(70, std::string("lockstep: odd\n")));
}

TEST(ReportError, NoMemoryIsTheMachines) {
  EXPECT_EQ(reported(std::bad_alloc()),
            std::pair(1, std::string("lockstep: not enough memory on this machine; make batch_size or "
                                     "data.cache.memory.budget smaller, or use more micro-batches\n")));
}

TEST(ReportError, NoThreadIsTheMachines) {
  EXPECT_EQ(reported(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again))),
            std::pair(1, std::string("lockstep: this machine refuses another thread; raise ulimit -u, or the limit of "
                                     "processes (pids) of the container, or make threads smaller\n")));
}

}  // namespace
}  // namespace lockstep::cli
