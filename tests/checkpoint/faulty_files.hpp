// A file system for tests: passes calls on to a real directory, records each, makes chosen ones fail, and can show what
// a disk may hold if the power failed after any of them.
//
// After a power cut, names in a directory persist if it was synced after they changed, and a file's bytes if the file
// was synced after they were written. Everything else may have reached the disk wholly, in part, or not at all.
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "lockstep/error.hpp"
#include "run/checkpoint/files.hpp"

namespace lockstep::checkpoint {

/// One call that was made.
struct FileCall {
  enum class Kind { create, write, sync, rename, make_directory, sync_directory, remove, note };
  Kind kind;
  std::string path, to;  ///< of a note: its text
  int inode = -1;
  std::string bytes;  ///< written
};

class FaultyFiles final : public FileSystem {
 public:
  /// Called before each call; throws to make it fail.
  std::function<void(const FileCall&)> before = [](const FileCall&) {};

  std::unique_ptr<OutputFile> create(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    before({FileCall::Kind::create, path, "", -1, ""});
    auto file = real_files().create(path);
    live_[path] = ++inodes_;
    log_.push_back({FileCall::Kind::create, path, "", inodes_, ""});
    return std::make_unique<File>(*this, path, inodes_, std::move(file));
  }
  void rename(const std::string& from, const std::string& to) override {
    const std::lock_guard lock(mutex_);
    FileCall call{FileCall::Kind::rename, from, to, live_[from], ""};
    before(call);
    real_files().rename(from, to);
    live_[to] = live_[from];
    live_.erase(from);
    log_.push_back(std::move(call));
  }
  bool make_directory(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    before({FileCall::Kind::make_directory, path, "", -1, ""});
    const bool made = real_files().make_directory(path);
    if (made) log_.push_back({FileCall::Kind::make_directory, path, "", -1, ""});
    return made;
  }
  void sync_directory(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    before({FileCall::Kind::sync_directory, path, "", -1, ""});
    log_.push_back({FileCall::Kind::sync_directory, path, "", -1, ""});
  }
  void remove(const std::string& path) override {
    const std::lock_guard lock(mutex_);
    before({FileCall::Kind::remove, path, "", -1, ""});
    if (!std::filesystem::exists(std::filesystem::symlink_status(path))) return;
    real_files().remove(path);
    log_.push_back({FileCall::Kind::remove, path, "", -1, ""});
  }

  /// Adds a remark to the log.
  void note(const std::string& text) {
    const std::lock_guard lock(mutex_);
    log_.push_back({FileCall::Kind::note, text, "", -1, ""});
  }
  [[nodiscard]] const std::vector<FileCall>& log() const { return log_; }

 private:
  class File final : public OutputFile {
   public:
    File(FaultyFiles& files, std::string path, int inode, std::unique_ptr<OutputFile> file)
        : files_(files), path_(std::move(path)), inode_(inode), file_(std::move(file)) {}
    void write(std::span<const std::byte> bytes) override {
      const std::lock_guard lock(files_.mutex_);
      FileCall call{
          FileCall::Kind::write, path_, "", inode_, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}};
      files_.before(call);
      file_->write(bytes);
      files_.log_.push_back(std::move(call));
    }
    void sync() override {
      const std::lock_guard lock(files_.mutex_);
      files_.before({FileCall::Kind::sync, path_, "", inode_, ""});
      files_.log_.push_back({FileCall::Kind::sync, path_, "", inode_, ""});
    }

   private:
    FaultyFiles& files_;
    std::string path_;
    int inode_;
    std::unique_ptr<OutputFile> file_;
  };

  std::mutex mutex_;
  std::map<std::string, int> live_;
  std::vector<FileCall> log_;
  int inodes_ = 0;
};

/// What happened to data that were not synced.
enum class Loss {
  none,    ///< the process was killed: the system continues and writes everything
  all,     ///< none of them had reached the disk
  bytes,   ///< names had, bytes had not: files are empty or truncated
  random,  ///< some had, in any order; some bytes are zeros
};

/// Creates under `to` what the disk holds of `root` if the machine stopped after the first `count` calls.
inline void write_disk(const std::vector<FileCall>& log, std::size_t count, Loss loss, unsigned seed,
                       const std::string& root, const std::string& to) {
  namespace fs = std::filesystem;
  using Kind = FileCall::Kind;
  std::mt19937 random(seed);
  const auto chance = [&] { return loss == Loss::random && random() % 2 == 0; };
  std::map<int, std::string> contents;
  std::map<int, std::size_t> synced;
  for (std::size_t i = 0; i < count; ++i) {
    if (log[i].kind == Kind::write) contents[log[i].inode] += log[i].bytes;
    if (log[i].kind == Kind::create) contents[log[i].inode];
    if (log[i].kind == Kind::sync) synced[log[i].inode] = contents[log[i].inode].size();
  }
  // Names, in order; a directory is inode 0.
  std::map<std::string, int> names;
  for (std::size_t i = 0; i < count; ++i) {
    const FileCall& call = log[i];
    if (call.kind != Kind::create && call.kind != Kind::rename && call.kind != Kind::make_directory &&
        call.kind != Kind::remove) {
      continue;
    }
    const std::string parent = fs::path(call.path).parent_path().string();
    bool lasts = loss == Loss::none || loss == Loss::bytes || chance();
    for (std::size_t j = i + 1; j < count && !lasts; ++j) {
      lasts = log[j].kind == Kind::sync_directory && log[j].path == parent;
    }
    if (!lasts) continue;
    if (call.kind == Kind::create) names[call.path] = call.inode;
    if (call.kind == Kind::make_directory) names[call.path] = 0;
    if (call.kind == Kind::remove) names.erase(call.path);
    if (call.kind != Kind::rename) continue;
    std::map<std::string, int> moved;
    for (const auto& [path, inode] : names) {
      const bool under = path == call.path || path.starts_with(call.path + "/");
      moved[under ? call.to + path.substr(call.path.size()) : path] = inode;
    }
    if (call.inode > 0) moved[call.to] = call.inode;
    names = std::move(moved);
  }
  fs::remove_all(to);
  fs::create_directories(to);
  for (const auto& [path, inode] : names) {  // in order: parents first
    const fs::path place = to + path.substr(root.size());
    if (!fs::is_directory(place.parent_path())) continue;  // its directory did not persist
    if (inode == 0) {
      fs::create_directory(place);
      continue;
    }
    std::string bytes = contents[inode];
    const std::size_t safe = synced[inode];
    if (loss == Loss::all || loss == Loss::bytes) bytes.resize(safe);
    if (loss == Loss::random && bytes.size() > safe) {
      const std::size_t kept = safe + random() % (bytes.size() - safe + 1);
      const std::size_t length = random() % 2 == 0 ? bytes.size() : kept;
      std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(kept), bytes.end(), '\0');
      bytes.resize(length);
    }
    std::ofstream(place, std::ios::binary) << bytes;
  }
}

}  // namespace lockstep::checkpoint
