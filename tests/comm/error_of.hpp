// The message of the error with which a call must end.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "lockstep/error.hpp"

namespace lockstep::comm {

inline std::string error_of(const std::function<void()>& body, ExitCode code = ExitCode::infrastructure) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  return "no error";
}

}  // namespace lockstep::comm
