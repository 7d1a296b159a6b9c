#include "checkpoint/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "lockstep/error.hpp"

namespace lockstep::checkpoint {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kWriteBytes = std::size_t{8} << 20;  ///< per call

[[noreturn]] void failed(const char* what, const std::string& path, const std::string& reason) {
  throw Error(ExitCode::infrastructure, fmt::format("{}: cannot {}: {}", path, what, reason));
}
[[noreturn]] void failed(const char* what, const std::string& path) {
  failed(what, path, std::strerror(errno));
}

class Descriptor final : public OutputFile {
 public:
  Descriptor(const std::string& path, int flags) : path_(path), fd_(::open(path.c_str(), flags, 0644)) {
    if (fd_ < 0) failed("open", path);
  }
  ~Descriptor() override { ::close(fd_); }  // synced data are safe, whatever close() returns
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  void write(std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), std::min(bytes.size(), kWriteBytes));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) failed("write", path_);
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
  }
  void sync() override {
    if (::fsync(fd_) != 0) failed("sync", path_);
  }

 private:
  std::string path_;
  int fd_;
};

class RealFiles final : public FileSystem {
 public:
  std::unique_ptr<OutputFile> create(const std::string& path) override {
    return std::make_unique<Descriptor>(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);
  }
  void rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) failed("rename into place", to);
  }
  bool make_directory(const std::string& path) override {
    std::error_code error;
    const bool made = fs::create_directory(path, error);
    if (error) failed("create", path, error.message());
    return made;
  }
  void sync_directory(const std::string& path) override { Descriptor(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC).sync(); }
  void remove(const std::string& path) override {
    std::error_code error;
    fs::remove(path, error);
    if (error) failed("remove", path, error.message());
  }
};

}  // namespace

FileSystem& real_files() {
  static RealFiles files;  // has no state
  return files;
}

void write_whole(FileSystem& files, const std::string& path, std::string_view bytes) {
  const std::string temporary = path + ".partial";
  {
    const auto file = files.create(temporary);
    file->write(std::as_bytes(std::span(bytes)));
    file->sync();
  }
  files.rename(temporary, path);
}

void make_directories(FileSystem& files, const std::string& path) {
  if (path.empty() || fs::is_directory(path)) return;
  const std::string parent = fs::path(path).parent_path().string();
  make_directories(files, parent);
  if (files.make_directory(path)) files.sync_directory(parent.empty() ? "." : parent);
}

void remove_tree(FileSystem& files, const std::string& path) {
  std::vector<std::string> names;
  std::error_code ignored;
  if (fs::is_directory(fs::symlink_status(path, ignored))) {
    for (const auto& entry : fs::directory_iterator(path, ignored)) names.push_back(entry.path().string());
  }
  for (const auto& name : names) remove_tree(files, name);
  files.remove(path);
}

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kReadBytes = std::size_t{8} << 20;  ///< per call

bool means_absent(int error) {
  return error == ENOENT || error == ENOTDIR;  // ENOTDIR: part of the path is a file
}

[[noreturn]] void failed(const char* what, const std::string& path, int error) {
  const bool forbidden = error == EACCES || error == EPERM;
  throw Error(forbidden ? ExitCode::cannot_create : ExitCode::infrastructure,
              fmt::format("{}: cannot {}: {}; {}", path, what, std::strerror(error),
                          forbidden ? "give this user the right to read it" : "try again when its disk answers"));
}

}  // namespace

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator at(directory, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  if (error && !means_absent(error.value())) failed("list the folder", directory, error.value());
  std::sort(names.begin(), names.end());
  return names;
}

bool is_there(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return true;
  if (!means_absent(errno)) failed("look for the file", path, errno);
  return false;
}

InputFile::InputFile(std::string path, int descriptor, std::uint64_t size)
    : path_(std::move(path)), descriptor_(descriptor), size_(size) {}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::optional<InputFile> InputFile::open(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0 && means_absent(errno)) return std::nullopt;
  if (descriptor < 0) failed("open", path, errno);
  InputFile file(path, descriptor, 0);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) failed("open", path, errno);
  if (S_ISDIR(status.st_mode)) throw Error(ExitCode::data, path + ": expected a file, found a folder");
  file.size_ = static_cast<std::uint64_t>(status.st_size);
  return file;
}

std::size_t InputFile::read(std::span<std::byte> out) {
  while (true) {
    const ssize_t got = ::read(descriptor_, out.data(), out.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) failed("read", path_, errno);
  }
}

std::optional<std::string> read_if_there(const std::string& path, const std::function<void()>& read_some) {
  auto file = InputFile::open(path);
  if (!file) return std::nullopt;
  std::string bytes(file->size(), '\0');
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const auto rest = std::as_writable_bytes(std::span(bytes)).subspan(filled);
    const std::size_t got = file->read(rest.first(std::min(rest.size(), kReadBytes)));
    if (got == 0) break;
    filled += got;
    if (read_some) read_some();
  }
  bytes.resize(filled);
  return bytes;
}

}  // namespace lockstep::checkpoint
