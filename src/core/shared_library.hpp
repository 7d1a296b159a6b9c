// A library opened at run time: the CUDA module, the driver, NVML.
#pragma once

#include <string>

namespace lockstep {

/// Never closed: NVIDIA's libraries leave threads and exit handlers behind, whose code must stay mapped.
class SharedLibrary {
 public:
  SharedLibrary() = default;
  /// Empty if the library cannot be opened; `why` is then the loader's message.
  [[nodiscard]] static SharedLibrary open(const std::string& path, std::string& why);

  explicit operator bool() const { return handle_ != nullptr; }
  /// Null if there is no such function.
  template <class Function>
  Function* find(const char* name) const {
    return reinterpret_cast<Function*>(address(name));
  }

 private:
  void* address(const char* name) const;
  void* handle_ = nullptr;
};

}  // namespace lockstep
