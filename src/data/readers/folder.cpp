// FileTree of a folder: names are listed once, links followed; files are opened when they are read.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "core/remote_path.hpp"
#include "data/archive.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

class Folder : public FileTree {
 public:
  Folder(const std::string& path, ByteCounter counter) : FileTree(path), counter_(std::move(counter)) {}

  void list() override {
    try {
      std::vector<Directory> way;
      list(path(), "", way);
    } catch (const fs::filesystem_error& error) {
      throw Error(ExitCode::data, fmt::format("{}: cannot be listed: {}", path(), error.code().message()));
    }
    sort();
  }

  std::string look_up(Entry& entry, IndexNotes* notes) const override {
    const std::string file = (fs::path(path()) / entry.name).string();
    if (notes != nullptr) notes->made_from_file(file);
    std::error_code failed;
    const auto size = fs::file_size(file, failed);
    entry.size = failed ? 0 : size;
    return failed ? fmt::format("{}: {}", entry.name, failed.message()) : "";
  }

  [[nodiscard]] std::span<const std::byte> read(const Entry& entry, std::uint64_t from, std::uint64_t length,
                                                std::vector<std::byte>& scratch) const override {
    const File file((fs::path(path()) / entry.name).string(), counter_);
    if (file.size() != entry.size) {
      throw Error(ExitCode::data, fmt::format("{}: has {} bytes; it had {} when the data set was indexed", file.path(),
                                              file.size(), entry.size));
    }
    scratch.resize(length);
    file.read(from, scratch);
    return scratch;
  }

 private:
  using Directory = std::pair<dev_t, ino_t>;

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
      std::error_code failed;
      const fs::file_status kind = found.status(failed);
      if (fs::is_directory(kind)) {
        list(found.path(), name, way);
      } else if (fs::is_regular_file(kind)) {
        add_file(name, 0, found.file_size());
      } else if (found.is_symlink() && !fs::exists(kind)) {
        add_fault(name, fmt::format("a link to {}: {}", target_of(found.path()),
                                    failed ? failed.message() : "No such file or directory"));
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
