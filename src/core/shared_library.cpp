#include "core/shared_library.hpp"

#include <dlfcn.h>

namespace lockstep {

SharedLibrary SharedLibrary::open(const std::string& path, std::string& why) {
  SharedLibrary library;
  // RTLD_LOCAL: none of its symbols may replace a function of ours.
  library.handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library.handle_ == nullptr) {
    const char* message = dlerror();
    why = message == nullptr ? path + ": cannot be opened" : message;
  }
  return library;
}

void* SharedLibrary::address(const char* name) const {
  return handle_ == nullptr ? nullptr : dlsym(handle_, name);
}

}  // namespace lockstep
