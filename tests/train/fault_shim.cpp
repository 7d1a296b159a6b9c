// Preloaded into the real program (LD_PRELOAD): counts its calls that change files under FAULT_PATH, and at call number
// FAULT_AT kills the process like a power cut, or makes FAULT_FOR calls fail with errno FAULT_ERROR.
//
// FAULT_SLOW: each opening for reading under FAULT_READ_PATH takes this many seconds longer.
// FAULT_READ=ERRNO: the first folder or file that is opened for reading under FAULT_READ_PATH cannot be opened;
// FAULT_READ_ONCE names a file which the failing process creates, so that no later process fails.
// FAULT_FLOCK=ERRNO: no file can be locked.
//
// At a kill, files lose what was not synced. FAULT_COUNT names a file for the number of calls.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

namespace {

struct OpenFile {
  std::string path;
  off_t written = 0;
};

struct State {
  std::mutex mutex;
  long calls = 0;
  std::map<int, OpenFile> open;
  std::map<std::string, off_t> safe;  // number of synced bytes of each created file
};

State& state() {
  static auto* it = new State;  // never destroyed
  return *it;
}

/// Locks the state. Signals wait meanwhile: the handlers of mpirun write, too, and would wait for their own thread.
class Locked {
 public:
  Locked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
    state().mutex.lock();
  }
  ~Locked() {
    state().mutex.unlock();
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  sigset_t before_{};
};

long number(const char* name, long otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atol(text);
}

template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

bool watched(const char* path) {
  const char* under = std::getenv("FAULT_PATH");
  return under != nullptr && path != nullptr && std::string(path).find(under) != std::string::npos;
}

[[noreturn]] void cut_the_power() {
  for (const auto& [path, length] : state().safe) (void)!truncate(path.c_str(), length);
  (void)kill(getpid(), SIGKILL);
  while (true) pause();
}

// True: the call must fail. The lock must be held.
bool counted() {
  const long call = ++state().calls, at = number("FAULT_AT", 0), error = number("FAULT_ERROR", 0);
  if (const char* file = std::getenv("FAULT_COUNT")) {
    if (std::FILE* out = std::fopen(file, "w")) {
      std::fprintf(out, "%ld\n", call);
      std::fclose(out);
    }
  }
  if (at == 0 || call < at) return false;
  if (error == 0) cut_the_power();
  if (call >= at + number("FAULT_FOR", 1)) return false;
  errno = static_cast<int>(error);
  return true;
}

std::string path_of(int fd) {
  std::array<char, 4096> path{};
  const ssize_t length = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path.data(), path.size());
  return {path.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
}

// True: this opening for reading must fail.
bool read_fails(const char* path) {
  const long error = number("FAULT_READ", 0), seconds = number("FAULT_SLOW", 0);
  const char* under = std::getenv("FAULT_READ_PATH");
  if (path == nullptr || under == nullptr || std::string(path).find(under) == std::string::npos) return false;
  if (seconds > 0) sleep(static_cast<unsigned>(seconds));
  if (error == 0) return false;
  const char* once = std::getenv("FAULT_READ_ONCE");
  const int fd = real<int (*)(const char*, int, ...)>("open")(once, O_CREAT | O_EXCL | O_WRONLY, 0600);
  if (fd < 0) return false;
  real<int (*)(int)>("close")(fd);
  errno = static_cast<int>(error);
  return true;
}

int opened(int fd, const char* path, int flags) {
  if (fd < 0 || !watched(path) || (flags & O_CREAT) == 0) return fd;
  state().open[fd] = {path, 0};
  state().safe[path] = 0;
  return fd;
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : mode_t{0};
  va_end(rest);
  if ((flags & O_CREAT) == 0 && read_fails(path)) return -1;
  const Locked lock;
  if (watched(path) && (flags & O_CREAT) != 0 && counted()) return -1;
  return opened(real<int (*)(const char*, int, ...)>("open")(path, flags, mode), path, flags);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : mode_t{0};
  va_end(rest);
  if (read_fails(path)) return -1;
  return real<int (*)(int, const char*, int, ...)>("openat")(folder, path, flags, mode);
}

DIR* opendir(const char* path) {
  if (read_fails(path)) return nullptr;
  return real<DIR* (*)(const char*)>("opendir")(path);
}

int close(int fd) {
  {
    const Locked lock;
    state().open.erase(fd);
  }
  return real<int (*)(int)>("close")(fd);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  const auto call = real<ssize_t (*)(int, const void*, size_t)>("write");
  const Locked lock;
  const auto found = state().open.find(fd);
  if (found == state().open.end()) return call(fd, bytes, size);
  if (counted()) return -1;
  const ssize_t done = call(fd, bytes, size);
  if (done > 0) found->second.written += done;
  return done;
}

int fsync(int fd) {
  const auto call = real<int (*)(int)>("fsync");
  const Locked lock;
  const auto found = state().open.find(fd);
  if ((found != state().open.end() || watched(path_of(fd).c_str())) && counted()) return -1;
  if (found != state().open.end()) state().safe[found->second.path] = found->second.written;
  return call(fd);
}

int rename(const char* from, const char* to) {
  const auto call = real<int (*)(const char*, const char*)>("rename");
  const Locked lock;
  if (!watched(from)) return call(from, to);
  if (counted()) return -1;
  const int done = call(from, to);
  if (done == 0) {
    state().safe[to] = state().safe[from];
    state().safe.erase(from);
  }
  return done;
}

int flock(int fd, int operation) {
  const auto call = real<int (*)(int, int)>("flock");
  const long error = number("FAULT_FLOCK", 0);
  if (error == 0) return call(fd, operation);
  errno = static_cast<int>(error);
  return -1;
}

int mkdir(const char* path, mode_t mode) {
  const auto call = real<int (*)(const char*, mode_t)>("mkdir");
  const Locked lock;
  if (watched(path) && counted()) return -1;
  return call(path, mode);
}

int remove(const char* path) {
  const auto call = real<int (*)(const char*)>("remove");
  const Locked lock;
  if (watched(path)) {
    if (counted()) return -1;
    state().safe.erase(path);
  }
  return call(path);
}

}  // extern "C"
