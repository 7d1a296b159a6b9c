// POSIX shared memory: create, map, and say clearly what is wrong where it is too small.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "comm/host_memory.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return value_; }

 private:
  int value_;
};

[[noreturn]] void fail(const std::string& what) {
  throw Error(ExitCode::infrastructure, what);
}

double mebibytes(double bytes) {
  return bytes / (1024.0 * 1024.0);
}

void allocate(int descriptor, const std::string& name, std::size_t bytes) {
  int error = 0;
  do {
    error = posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
  } while (error == EINTR);
  if (error == 0) return;
  struct statvfs space {};
  const bool known = fstatvfs(descriptor, &space) == 0;
  const double available = known ? static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize) : 0;
  shm_unlink(name.c_str());
  fail(fmt::format(
      "shared memory for the gradient exchange: {:.1f} MiB are needed, /dev/shm has {:.1f} MiB free ({}); "
      "give it more: docker run --shm-size=2g, or in Kubernetes an emptyDir with medium: Memory on /dev/shm",
      mebibytes(static_cast<double>(bytes)), mebibytes(available), std::strerror(error)));
}

std::byte* map(int descriptor, const std::string& name, std::size_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED) fail(fmt::format("mmap of shared memory {}: {}", name, std::strerror(errno)));
  return static_cast<std::byte*>(data);
}

}  // namespace

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedSegment::~SharedSegment() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

SharedSegment SharedSegment::create(const std::string& name, std::size_t bytes) {
  const Descriptor file(shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600));
  if (file.get() < 0) fail(fmt::format("cannot create shared memory {}: {}", name, std::strerror(errno)));
  allocate(file.get(), name, bytes);
  SharedSegment segment;
  segment.bytes_ = bytes;
  segment.data_ = map(file.get(), name, bytes);
  return segment;
}

SharedSegment SharedSegment::open(const std::string& name, std::size_t bytes) {
  const Descriptor file(shm_open(name.c_str(), O_RDWR, 0));
  if (file.get() < 0) {
    fail(
        fmt::format("cannot open a peer's shared memory {}: {}; ranks that call their host by one name must share "
                    "/dev/shm (containers: --ipc=host), or set LOCKSTEP_HOST_ID to a different name for each",
                    name, std::strerror(errno)));
  }
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || status.st_size != static_cast<off_t>(bytes)) {
    fail(fmt::format("a peer's shared memory {} has {} bytes, expected {}", name, status.st_size, bytes));
  }
  SharedSegment segment;
  segment.bytes_ = bytes;
  segment.data_ = map(file.get(), name, bytes);
  return segment;
}

}  // namespace lockstep::comm
