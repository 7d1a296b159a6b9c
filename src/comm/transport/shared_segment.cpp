// Creates and maps shared memory, and reports clearly if there is too little.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <utility>

#include "comm/transport/file_server.hpp"
#include "comm/transport/host_memory.hpp"
#include "core/round_up.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

[[noreturn]] void no_shared_memory(const std::string& what) {
  throw Error(ExitCode::infrastructure, what);
}

double mebibytes(double bytes) {
  return bytes / (1024.0 * 1024.0);
}

[[noreturn]] void no_room(const std::string& use, std::size_t bytes, int descriptor, int error) {
  struct statvfs space {};
  const bool known = fstatvfs(descriptor, &space) == 0;
  const double available = known ? static_cast<double>(space.f_bavail) * space.f_frsize : 0;
  no_shared_memory(fmt::format(
      "shared memory for {}: {:.1f} MiB are needed, /dev/shm has {:.1f} MiB free ({}); "
      "give it more: docker run --shm-size=2g, or in Kubernetes an emptyDir with medium: Memory on /dev/shm",
      use, mebibytes(static_cast<double>(bytes)), mebibytes(available), std::strerror(error)));
}

// Allocates every page that the range touches, and does not change what is in them; all or none. On the descriptor
// rather than in memory: MADV_POPULATE_WRITE exists only since Linux 5.14. Returns an errno.
int allocate(int descriptor, ByteRange range) {
  if (range.begin >= range.end) return 0;
  int error = 0;
  do {
    error = posix_fallocate(descriptor, static_cast<off_t>(range.begin), static_cast<off_t>(range.end - range.begin));
  } while (error == EINTR);
  return error;
}

void allocate_all(int descriptor, const std::vector<ByteRange>& ranges, const std::string& use) {
  int error = 0;
  std::size_t bytes = 0;
  for (const ByteRange& range : ranges) {
    bytes += range.end - range.begin;
    if (error == 0) error = allocate(descriptor, range);
  }
  if (error == 0) return;
  [[maybe_unused]] const int ignored =
      ftruncate(descriptor, 0);  // what has been allocated is free again in the message
  no_room(use, bytes, descriptor, error);
}

void grow(int descriptor, std::size_t bytes) {
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) == 0) return;
  no_shared_memory(fmt::format("{} bytes of shared memory: {}", bytes, std::strerror(errno)));
}

std::span<std::byte> whole_pages(std::span<std::byte> bytes) {
  static const std::uintptr_t page = sysconf(_SC_PAGESIZE);
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t first = round_up(begin, page), last = (begin + bytes.size()) / page * page;
  return first < last ? bytes.subspan(first - begin, last - first) : std::span<std::byte>();
}

// An unnamed file in /dev/shm, so that nothing is left of it when its processes are gone.
FileHandle nameless_file() {
  FileHandle file({::open("/dev/shm", O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600)});
  if (file || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return file;
  // Not every kernel and file system supports O_TMPFILE. Here the file has a name for a moment, while it is still
  // empty.
  std::random_device random;
  const std::string name = fmt::format("/lockstep-{}-{:08x}{:08x}", getpid(), random(), random());
  file.reset({shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600)});
  if (file) shm_unlink(name.c_str());
  return file;
}

std::byte* map(int descriptor, std::size_t bytes, bool all_pages = false) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (all_pages ? MAP_POPULATE : 0), descriptor, 0);
  if (data == MAP_FAILED)
    no_shared_memory(fmt::format("mmap of {} bytes of shared memory: {}", bytes, std::strerror(errno)));
  return static_cast<std::byte*>(data);
}

}  // namespace

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedSegment::~SharedSegment() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

SharedSegment SharedSegment::create(std::size_t bytes, const std::string& use,
                                    const std::optional<std::vector<ByteRange>>& written) {
  SharedSegment segment;
  segment.file_ = nameless_file();
  if (!segment.file_)
    no_shared_memory(fmt::format("cannot create shared memory in /dev/shm: {}", std::strerror(errno)));
  allocate_all(segment.file_.get().number, written.value_or(std::vector<ByteRange>{{0, bytes}}), use);
  grow(segment.file_.get().number, bytes);
  segment.data_ = map(segment.file_.get().number, bytes);
  segment.bytes_ = bytes;
  return segment;
}

SharedSegment SharedSegment::open(const std::string& server, std::size_t bytes, std::chrono::milliseconds timeout,
                                  bool all_read) {
  FileHandle file;
  try {
    file = fetch_file(server, timeout);
  } catch (const Error& error) {
    no_shared_memory(
        fmt::format("cannot open a peer's shared memory: {}; ranks that call their host by one name must share its "
                    "network namespace (containers: --network=host), or set LOCKSTEP_HOST_ID to a different name for "
                    "each",
                    error.what()));
  }
  struct stat status {};
  if (fstat(file.get().number, &status) != 0 || status.st_size != static_cast<off_t>(bytes)) {
    no_shared_memory(fmt::format("a peer's shared memory has {} bytes, expected {}", status.st_size, bytes));
  }
  SharedSegment segment;
  segment.data_ = map(file.get().number, bytes, all_read);
  segment.bytes_ = bytes;
  segment.file_ = std::move(file);
  return segment;
}

FileHandle SharedSegment::duplicate_file() const {
  FileHandle file({fcntl(file_.get().number, F_DUPFD_CLOEXEC, 0)});
  if (!file) no_shared_memory(fmt::format("another handle of shared memory: {}", std::strerror(errno)));
  return file;
}

void SharedSegment::take_pages(ByteRange range, const std::string& use) const {
  const int error = allocate(file_.get().number, range);
  if (error != 0) no_room(use, range.end - range.begin, file_.get().number, error);
}

// MADV_REMOVE fails on ordinary memory, which is private.
void HostMemory::release_pages(int local_rank, ByteRange range) const {
  const auto pages = whole_pages({block(local_rank) + range.begin, block(local_rank) + range.end});
  if (pages.empty() || madvise(pages.data(), pages.size(), MADV_REMOVE) == 0) return;
  (void)madvise(pages.data(), pages.size(), MADV_DONTNEED);
}

}  // namespace lockstep::comm
