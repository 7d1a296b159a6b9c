// Preloaded into a rank: stops the process (SIGSTOP) when it maps a reducer's shared memory for the LOCKSTEP_STOP_AT-th
// time. LOCKSTEP_NO_TMPFILE simulates a kernel without O_TMPFILE.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace {

std::atomic<int> maps{0};

// Of a reducer, not of Open MPI: a file of our name in /dev/shm, or one without a name ("/dev/shm/#123 (deleted)").
bool is_of_a_reduce(int descriptor) {
  std::array<char, 64> link{};
  std::array<char, 256> path{};
  (void)std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", descriptor);
  if (readlink(link.data(), path.data(), path.size() - 1) <= 0) return false;
  const std::string_view name(path.data());
  const bool plain = name.find('/', std::string_view("/dev/shm/").size()) == std::string_view::npos;
  return plain && (name.starts_with("/dev/shm/#") || name.starts_with("/dev/shm/lockstep-"));
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

void* mmap(void* address, size_t length, int protection, int flags, int descriptor, off_t offset) noexcept {
  static const auto real = next<void* (*)(void*, size_t, int, int, int, off_t)>("mmap");
  if ((flags & MAP_SHARED) != 0 && descriptor >= 0 && is_of_a_reduce(descriptor)) {
    const char* stop_at = std::getenv("LOCKSTEP_STOP_AT");
    if (++maps == (stop_at == nullptr ? 0 : std::atoi(stop_at))) (void)raise(SIGSTOP);
  }
  return real(address, length, protection, flags, descriptor, offset);
}

int open(const char* path, int flags, ...) {
  static const auto real = next<int (*)(const char*, int, ...)>("open");
  va_list rest;
  va_start(rest, flags);
  const unsigned mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, unsigned) : 0;
  va_end(rest);
  if ((flags & O_TMPFILE) == O_TMPFILE && std::getenv("LOCKSTEP_NO_TMPFILE") != nullptr) {
    errno = EOPNOTSUPP;
    return -1;
  }
  return real(path, flags, mode);
}
}
