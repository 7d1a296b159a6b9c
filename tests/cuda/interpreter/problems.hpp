// What was found to be wrong: each thing is said once, on stderr, and counted.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>

#include "cuda/interpreter/types.hpp"

namespace lockstep::ptx {

class Problems {
 public:
  struct Problem {
    u64 times = 0;
    std::string first;  ///< in full: place and address of the first time
  };

  /// `what` and where in the text; `detail`, what differs from time to time.
  void add(const std::string& what, const std::string& detail = "");
  /// An access that a GPU answers by failing all that follows.
  void break_gpu() { broken_ = true; }
  [[nodiscard]] bool is_broken() const { return broken_; }
  [[nodiscard]] std::map<std::string, Problem> all() const;
  void clear();

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Problem> problems_;
  std::atomic<bool> broken_ = false;
};

}  // namespace lockstep::ptx
