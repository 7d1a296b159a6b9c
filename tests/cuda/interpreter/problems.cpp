#include "cuda/interpreter/problems.hpp"

#include <cstdio>

namespace lockstep::ptx {

void Problems::add(const std::string& what, const std::string& detail) {
  const std::lock_guard lock(mutex_);
  Problem& problem = problems_[what];
  if (problem.times++ > 0) return;
  problem.first = detail.empty() ? what : what + "; " + detail;
  (void)std::fprintf(stderr, "interpreted GPU: %s\n", problem.first.c_str());
}

std::map<std::string, Problems::Problem> Problems::all() const {
  const std::lock_guard lock(mutex_);
  return problems_;
}

void Problems::clear() {
  const std::lock_guard lock(mutex_);
  problems_.clear();
  broken_ = false;
}

}  // namespace lockstep::ptx
