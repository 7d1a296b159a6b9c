#include "core/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
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

}  // namespace lockstep
