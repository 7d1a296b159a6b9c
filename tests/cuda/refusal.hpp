// How a library's refusal comes to whoever called.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "lockstep/error.hpp"

namespace lockstep {

/// The message of the error that the body ends with, which is one of the infrastructure; empty: there was none.
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
