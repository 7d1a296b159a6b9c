// FileTree of a folder: names are listed once, links followed; files are opened when they are read. A file's "offset"
// is its version when it was listed, which must be the same after each reading.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "core/errno_code.hpp"
#include "core/remote_path.hpp"
#include "data/archive.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

class Folder : public FileTree {
 public:
  Folder(const std::string& path, ByteCounter counter)
      : FileTree(path), counter_(std::move(counter)), stable_inodes_(has_stable_inodes(path)) {}

  void list() override {
    try {
      std::vector<Directory> way;
      list(path(), "", way);
    } catch (const fs::filesystem_error& error) {
      throw Error(code_of_errno(error.code(), ExitCode::data),
                  fmt::format("{}: cannot be listed: {}", path(), error.code().message()));
    }
    sort();
    require_different_names();
  }

  std::string look_up(Entry& entry, IndexNotes* notes) const override {
    const std::string file = (fs::path(path()) / entry.name).string();
    if (notes != nullptr) notes->made_from_sample_file(file);
    struct stat status {};
    const bool failed = ::stat(file.c_str(), &status) != 0;
    const int reason = failed ? errno : S_ISDIR(status.st_mode) ? EISDIR : S_ISREG(status.st_mode) ? 0 : ENOTSUP;
    if (reason == 0) set_state(entry, status);
    return reason == 0 ? "" : fmt::format("{}: {}", entry.name, std::generic_category().message(reason));
  }

  std::span<const std::byte> read(const Entry& entry, std::uint64_t from, std::uint64_t length,
                                  std::vector<std::byte>& scratch) const override {
    const File file(stored(path(), entry.name), counter_);
    if (file.size() != entry.size) {
      throw Error(ExitCode::data, fmt::format("{}: has {} bytes; it had {} when the data set was indexed", file.path(),
                                              file.size(), entry.size));
    }
    scratch.resize(length);
    file.read(from, scratch);
    if (file.state(stable_inodes_).version() != entry.offset) {  // after the reading, so that none is mixed
      throw Error(ExitCode::data,
                  fmt::format("{}: has been modified or replaced since the data set was indexed", file.path()));
    }
    return scratch;
  }

 private:
  using Directory = std::pair<dev_t, ino_t>;

  /// The path of a file, whose letters may be decomposed where its name's are composed.
  static std::string stored(const fs::path& folder, const std::string& name) {
    std::string direct = (folder / name).string();
    if (fs::exists(direct)) return direct;
    const std::size_t end = name.find('/');
    std::error_code ignored;
    for (const auto& found : fs::directory_iterator(folder, ignored)) {
      if (clean_name(found.path().filename().string()) != name.substr(0, end)) continue;
      if (end == std::string::npos) return found.path().string();
      std::string below = stored(found.path(), name.substr(end + 1));
      if (fs::exists(below)) return below;
    }
    return direct;
  }

  void set_state(Entry& entry, const struct stat& status) const {
    const FileState state = state_of(status, stable_inodes_);
    entry.size = state.size;
    entry.offset = state.version();
  }

  /// Adds what is in `folder`, whose name is `as`; `way`: the folders that it lies in.
  void list(const fs::path& folder, const std::string& as, std::vector<Directory>& way) {
    struct stat status {};
    if (::stat(folder.c_str(), &status) != 0) {
      throw fs::filesystem_error("", folder, std::error_code(errno, std::generic_category()));
    }
    const Directory self{status.st_dev, status.st_ino};
    if (std::find(way.begin(), way.end(), self) != way.end()) {
      return add_fault(as, fmt::format("a link to {}, a folder that it lies in", target_of(folder)));
    }
    if (!as.empty()) add_folder(as);
    way.push_back(self);
    for (const auto& found : fs::directory_iterator(folder)) {
      const std::string file = found.path().filename().string(), name = as.empty() ? file : as + "/" + file;
      const bool is_there = ::stat(found.path().c_str(), &status) == 0;
      const int reason = errno;
      if (is_there && S_ISDIR(status.st_mode)) {
        list(found.path(), name, way);
      } else if (is_there && S_ISREG(status.st_mode)) {
        const FileState state = state_of(status, stable_inodes_);
        add_file(name, state.version(), state.size);
      } else if (!is_there && found.is_symlink()) {
        add_fault(name,
                  fmt::format("a link to {}: {}", target_of(found.path()), std::generic_category().message(reason)));
      } else {
        add_fault(name, "neither a file nor a folder");
      }
    }
    way.pop_back();
  }
  static std::string target_of(const fs::path& link) {
    std::error_code ignored;
    return fs::read_symlink(link, ignored).string();
  }

  ByteCounter counter_;
  bool stable_inodes_;
};

}  // namespace

std::unique_ptr<FileTree> open_folder(const std::string& path, const ByteCounter& counter) {
  if (is_remote(path)) return open_object_folder(path, counter);
  return std::make_unique<Folder>(path, counter);
}

std::unique_ptr<FileTree> open_loose_files(const std::string& folder, const ByteCounter& counter) {
  if (is_remote(folder)) return open_object_folder(folder, counter);
  return std::make_unique<Folder>(folder, counter);
}

}  // namespace lockstep::data
