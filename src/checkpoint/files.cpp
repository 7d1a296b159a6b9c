#include "checkpoint/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "lockstep/error.hpp"

namespace lockstep::checkpoint {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kWriteBytes = std::size_t{8} << 20;  ///< of one call

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
  ~Descriptor() override { ::close(fd_); }  // what was synced is safe, whatever close says
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
  static RealFiles files;  // it has no state
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

}  // namespace lockstep::checkpoint
