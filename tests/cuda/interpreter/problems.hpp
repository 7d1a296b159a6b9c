// Problems that were found: each is reported once, on stderr, and counted.
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
    std::string first;  ///< full text: place and address of the first occurrence
  };

  /// `what` includes the place in the text; `detail` may differ between occurrences.
  void add(const std::string& what, const std::string& detail = "");
  /// After an access that makes a GPU fail everything that follows.
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
