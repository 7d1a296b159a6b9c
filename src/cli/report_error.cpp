#include "cli/report_error.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <new>

#include "lockstep/exit_code.hpp"

namespace lockstep::cli {

namespace {

bool is_no_memory(const std::exception& error) {
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
}

}  // namespace

int report(const std::exception& error) {
  fmt::print(stderr, "lockstep: {}\n",
             is_no_memory(error) ? "not enough memory on this machine; make batch_size or data.cache.memory.budget "
                                   "smaller, or use more shards"
                                 : error.what());
  return exit_code(error);
}

}  // namespace lockstep::cli
