// A file as memory, to read.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>

#include "core/errno_code.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {

class MappedFile {
 public:
  /// Throws Error(data) if it cannot be read.
  explicit MappedFile(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    const bool known = file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    size_ = known ? static_cast<std::size_t>(status.st_size) : 0;
    if (size_ > 0) memory_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    const int error = errno;
    if (file >= 0) close(file);
    if (known && memory_ != MAP_FAILED) return;
    throw Error(code_of_errno(known || file < 0 ? error : 0, ExitCode::data),
                fmt::format("{}: cannot read: {}", path,
                            file >= 0 && !known ? "not a file" : std::generic_category().message(error)));
  }
  ~MappedFile() {
    if (size_ > 0) munmap(memory_, size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view text() const { return {static_cast<const char*>(memory_), size_}; }

 private:
  std::size_t size_ = 0;
  void* memory_ = nullptr;
};

}  // namespace lockstep::data
