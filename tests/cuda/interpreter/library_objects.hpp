// Objects that a library in the place of one of NVIDIA's hands out: handles, descriptors. One that isn't there is a
// problem, and so is one that is left at the end.
#pragma once

#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "cuda/interpreter/library_kernel.hpp"

namespace lockstep::ptx {

template <class Object>
class LibraryObjects {
 public:
  /// `what` they are, for messages: "descriptors of cuBLASLt".
  explicit LibraryObjects(std::string what) : what_(std::move(what)) {
    (void)cudaInterpreterMutex();  // which then ends after this
  }
  LibraryObjects(const LibraryObjects&) = delete;
  LibraryObjects& operator=(const LibraryObjects&) = delete;
  ~LibraryObjects() {
    if (!all_.empty()) cudaInterpreterProblem(fmt::format("{} {} are left at the end", all_.size(), what_));
  }

  void* add(std::shared_ptr<Object> object) {
    void* const handle = object.get();
    all_.emplace(handle, std::move(object));
    return handle;
  }
  /// Null, and a problem: it isn't there.
  [[nodiscard]] std::shared_ptr<Object> find(const void* handle, const char* call) const {
    const auto found = all_.find(handle);
    if (found != all_.end()) return found->second;
    cudaInterpreterProblem(fmt::format("{}: none of the {} that are there", call, what_));
    return nullptr;
  }
  /// Whether it was there.
  bool remove(const void* handle, const char* call) {
    if (find(handle, call) == nullptr) return false;
    all_.erase(handle);
    return true;
  }

 private:
  std::string what_;
  std::map<const void*, std::shared_ptr<Object>> all_;
};

}  // namespace lockstep::ptx
