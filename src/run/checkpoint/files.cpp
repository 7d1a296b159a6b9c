#include "run/checkpoint/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include "lockstep/error.hpp"

namespace lockstep::checkpoint {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void failed(const char* what, const std::string& path, const std::string& reason) {
  throw Error(ExitCode::infrastructure, fmt::format("{}: cannot {}: {}", path, what, reason));
}

class RealFile final : public OutputFile {
 public:
  explicit RealFile(const std::string& path) : file_(path, O_WRONLY | O_CREAT | O_TRUNC) {}
  void write(std::span<const std::byte> bytes) override { file_.write(bytes); }
  void sync() override { file_.sync(); }

 private:
  OpenFile file_;
};

class RealFiles final : public FileSystem {
 public:
  std::unique_ptr<OutputFile> create(const std::string& path) override { return std::make_unique<RealFile>(path); }
  void rename(const std::string& from, const std::string& to) override {
    if (std::rename(from.c_str(), to.c_str()) != 0) failed("rename into place", to, std::strerror(errno));
  }
  bool make_directory(const std::string& path) override {
    std::error_code error;
    const bool made = fs::create_directory(path, error);
    if (error) failed("create", path, error.message());
    return made;
  }
  void sync_directory(const std::string& path) override { sync_folder(path); }
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

}  // namespace lockstep::checkpoint
