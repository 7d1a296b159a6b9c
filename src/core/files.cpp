#include "core/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <span>
#include <utility>

#include "lockstep/error.hpp"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kWriteBytes = std::size_t{8} << 20;  ///< per call

bool forbids(int error) {
  return error == EACCES || error == EPERM || error == EROFS;
}

bool means_absent(int error) {
  return error == ENOENT || error == ENOTDIR;  // ENOTDIR: part of the path is a file
}

[[noreturn]] void cannot_read(const char* what, const std::string& path, int error) {
  throw Error(forbids(error) ? ExitCode::cannot_create : ExitCode::infrastructure,
              fmt::format("{}: cannot {}: {}; {}", path, what, std::strerror(error),
                          forbids(error) ? "give this user the right to read it" : "try again when its disk answers"));
}

[[noreturn]] void cannot_write(const char* what, const std::string& path, int error) {
  throw Error(forbids(error) ? ExitCode::cannot_create : ExitCode::infrastructure,
              fmt::format("{}: cannot {}: {}", path, what, std::strerror(error)));
}

int open_again(const std::string& path, int flags) {
  int descriptor = -1;
  do {
    descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

Descriptor opened(const std::string& path, int flags) {
  const int descriptor = open_again(path, flags);
  if (descriptor >= 0) return Descriptor(descriptor);
  const int error = errno;
  if ((flags & O_CREAT) == 0) cannot_write("open", path, error);
  if (!means_absent(error)) cannot_write("create", path, error);
  throw Error(ExitCode::cannot_create, fmt::format("{}: cannot create: {}", path, std::strerror(error)));  // no folder
}

/// O_EXCL refuses a name that is taken, by a process of this number on another host say; the next one is tried then.
std::string new_name(const std::string& path) {
  static std::atomic<std::uint64_t> count{0};  // of this process
  return fmt::format("{}.{}-{}{}", path, ::getpid(), ++count, kNewFileEnding);
}

OpenFile create_new(const std::string& path) {
  while (true) {
    const std::string name = new_name(path);
    if (!is_there(name)) return {name, O_WRONLY | O_CREAT | O_EXCL};
  }
}

}  // namespace

void DescriptorTraits::destroy(int descriptor) noexcept {
  ::close(descriptor);  // what was synced is safe, whatever close() returns
}

OpenFile::OpenFile(std::string path, int flags) : path_(std::move(path)), descriptor_(opened(path_, flags)) {}

void OpenFile::write(std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor(), bytes.data(), std::min(bytes.size(), kWriteBytes));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) cannot_write("write", path_, errno);
    bytes = bytes.subspan(written);
  }
}

void OpenFile::append(std::string_view text) const {
  const std::uint64_t before = size();
  try {
    write(std::as_bytes(std::span(text)));
  } catch (const Error&) {
    [[maybe_unused]] const int cut = ::ftruncate(descriptor(), static_cast<off_t>(before));
    throw;
  }
}

void OpenFile::sync() const {
  if (::fsync(descriptor()) != 0) cannot_write("sync", path_, errno);
}

std::uint64_t OpenFile::size() const {
  struct stat status {};
  if (::fstat(descriptor(), &status) != 0) cannot_read("ask for the size", path_, errno);
  return status.st_size;
}

NewFile::NewFile(std::string path) : path_(std::move(path)), file_(create_new(path_)) {}

NewFile::~NewFile() {
  if (!committed_) ::unlink(file_.path().c_str());
}

void NewFile::commit() {
  file_.sync();
  if (::rename(file_.path().c_str(), path_.c_str()) != 0) cannot_write("rename into place", path_, errno);
  committed_ = true;
  sync_folder(fs::path(path_).parent_path().string());
}

std::optional<InputFile> InputFile::open(const std::string& path) {
  const int descriptor = open_again(path, O_RDONLY);
  if (descriptor < 0 && means_absent(errno)) return std::nullopt;
  if (descriptor < 0) cannot_read("open", path, errno);
  InputFile file(path, Descriptor(descriptor));
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) cannot_read("open", path, errno);
  if (S_ISDIR(status.st_mode)) throw Error(ExitCode::data, path + ": expected a file, found a folder");
  file.size_ = status.st_size;
  return file;
}

std::size_t InputFile::read(std::span<std::byte> out) {
  while (true) {
    const ssize_t got = ::read(descriptor_.get(), out.data(), out.size());
    if (got >= 0) return got;
    if (errno != EINTR) cannot_read("read", path_, errno);
  }
}

bool is_there(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return true;
  if (!means_absent(errno)) cannot_read("look for the file", path, errno);
  return false;
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator at(directory, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  if (error && !means_absent(error.value())) cannot_read("list the folder", directory, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

void make_folders(const std::string& path) {
  std::error_code error;
  if (!path.empty()) fs::create_directories(path, error);
  if (error) cannot_write("create the folder", path, error.value());
}

void sync_folder(const std::string& path) {
  OpenFile(path.empty() ? "." : path, O_RDONLY | O_DIRECTORY).sync();
}

namespace {

constexpr std::size_t kReadBytes = std::size_t{8} << 20, kUnknownSize = 4096;  ///< per call

}  // namespace

std::optional<std::string> read_whole_file(const std::string& path, const std::function<void()>& read_some) {
  auto file = InputFile::open(path);
  if (!file) return std::nullopt;
  std::string bytes(std::max<std::size_t>(file->size() + 1, kUnknownSize), '\0');  // 1 more sees the end
  for (std::size_t filled = 0;;) {
    if (filled == bytes.size()) bytes.resize(2 * filled);
    const auto rest = std::as_writable_bytes(std::span(bytes)).subspan(filled);
    const std::size_t got = file->read(rest.first(std::min(rest.size(), kReadBytes)));
    filled += got;
    if (got == 0) {
      bytes.resize(filled);
      return bytes;
    }
    if (read_some) read_some();
  }
}

std::string read_kernel_file(const std::string& path) {
  try {
    return read_whole_file(path).value_or("");
  } catch (const Error&) {
    return "";
  }
}

void write_whole_file(const std::string& path, std::string_view bytes) {
  make_folders(std::filesystem::path(path).parent_path().string());
  NewFile file(path);
  file.write(std::as_bytes(std::span(bytes)));
  file.commit();
}

std::string try_write_whole_file(const std::string& path, std::string_view bytes) {
  try {
    write_whole_file(path, bytes);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

namespace {

constexpr int kFlags = O_RDWR | O_CREAT;

}  // namespace

LockedFile::LockedFile(const std::string& path) : file_(path, kFlags) {}

bool LockedFile::lock(int how) {  // NOLINT(readability-make-member-function-const): it changes the lock
  while (::flock(file_.descriptor(), how | LOCK_NB) != 0) {
    const int error = errno;
    if (error == EWOULDBLOCK) return false;
    if (error == ENOSYS || error == EOPNOTSUPP || error == EINVAL) {
      throw Error(ExitCode::cannot_create,
                  fmt::format("{}: its file system has no locks ({})", path(), std::strerror(error)));
    }
    if (error != EINTR) {
      throw Error(ExitCode::infrastructure, fmt::format("{}: cannot lock it: {}", path(), std::strerror(error)));
    }
  }
  return true;
}

// A lock on a file that has lost its name keeps nobody out.
bool LockedFile::has_its_name() const {
  struct stat own {
  }, named{};
  if (!is_there(path()) || ::stat(path().c_str(), &named) != 0) return false;
  return ::fstat(file_.descriptor(), &own) == 0 && own.st_dev == named.st_dev && own.st_ino == named.st_ino;
}

bool LockedFile::try_lock() {
  while (lock(LOCK_EX)) {
    if (has_its_name()) return true;
    file_ = OpenFile(path(), kFlags);  // its last holder has removed it
  }
  return false;
}

// A shared lock, so that those who only ask do not see each other.
bool LockedFile::is_free() {
  if (!lock(LOCK_SH)) return false;
  if (::flock(file_.descriptor(), LOCK_UN) == 0) return true;
  throw Error(ExitCode::infrastructure, fmt::format("{}: cannot unlock it: {}", path(), std::strerror(errno)));
}

void LockedFile::write(const std::string& text) {
  text_ = text;
  if (::ftruncate(file_.descriptor(), 0) != 0 || ::lseek(file_.descriptor(), 0, SEEK_SET) != 0) {
    throw Error(ExitCode::infrastructure, fmt::format("{}: cannot sign it: {}", path(), std::strerror(errno)));
  }
  file_.write(std::as_bytes(std::span(text)));
  file_.sync();
}

bool LockedFile::renew() {
  if (has_its_name()) return true;
  make_folders(std::filesystem::path(path()).parent_path().string());
  LockedFile again(path());
  if (!again.try_lock()) return false;
  const std::string signature = read_whole_file(path()).value_or("");
  if (!signature.empty() && signature != text_) return false;  // of one that has come and gone
  if (!text_.empty()) again.write(text_);
  *this = std::move(again);
  return true;
}

}  // namespace lockstep
