// How a library's refusal reaches the caller.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "lockstep/error.hpp"

namespace lockstep {

/// The message of the error with which the body ends, which must be an infrastructure error; empty: there was none.
template <class Body>
std::string refusal(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::infrastructure);
    return error.what();
  }
  return "";
}

}  // namespace lockstep
