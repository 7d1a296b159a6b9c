// Which errors of the system pass.
#include "core/errno_code.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <future>

namespace lockstep {
namespace {

TEST(ErrnoCode, WhatTheMachineIsToBlameForPasses) {
  for (const int error : {EAGAIN, EDQUOT, EHOSTDOWN, EHOSTUNREACH, EIO, EMFILE, ENFILE, ENOLCK, ENOMEM, ENOSPC,
                          ENOTCONN, ESTALE, ETIMEDOUT}) {
    EXPECT_EQ(code_of_errno(error, ExitCode::data), ExitCode::infrastructure) << error;
    EXPECT_EQ(code_of_errno(std::error_code(error, std::generic_category()), ExitCode::cannot_create),
              ExitCode::infrastructure)
        << error;
  }
}

TEST(ErrnoCode, WhatWasAskedForDoesNot) {
  for (const int error : {0, ENOENT, EACCES, EPERM, EISDIR, ENOTDIR, EROFS, ENAMETOOLONG}) {
    EXPECT_EQ(code_of_errno(error, ExitCode::data), ExitCode::data) << error;
    EXPECT_EQ(code_of_errno(error, ExitCode::cannot_create), ExitCode::cannot_create) << error;
  }
  EXPECT_EQ(code_of_errno(std::make_error_code(std::future_errc::no_state), ExitCode::data), ExitCode::data);
}

TEST(ErrnoCode, ExceptionsOfTheLibraryAreClassifiedToo) {
  const auto full = std::make_error_code(std::errc::no_space_on_device);
  EXPECT_EQ(exit_code(std::filesystem::filesystem_error("", full)), 1);
  EXPECT_EQ(exit_code(std::system_error(std::make_error_code(std::errc::permission_denied))), 70);
}

}  // namespace
}  // namespace lockstep
