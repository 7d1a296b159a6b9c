// FileTree of a folder: names are listed once, files are opened when they are read.
#include <fmt/format.h>

#include <filesystem>

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
      const auto options = fs::directory_options::follow_directory_symlink;
      for (const auto& found : fs::recursive_directory_iterator(path(), options)) {
        const std::string name = found.path().lexically_relative(path()).generic_string();
        if (found.is_directory()) add_folder(name);
        if (found.is_regular_file()) add_file(name, 0, found.file_size());
      }
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
