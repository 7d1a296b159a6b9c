// What unpacking an archive onto a disk would leave there: its entries come one after the other; a later file of a name
// replaces an earlier one, hard links share what they name, and symbolic links are followed at the end, as far as they
// stay in the archive. A folder and an archive of it so have the same files.
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "data/archive.hpp"

namespace lockstep::data {

class UnpackedNames {
 public:
  struct Content {
    std::uint64_t offset = 0, size = 0;  ///< FileTree::Entry's
  };

  /// `path`: the archive's, for messages.
  explicit UnpackedNames(std::string path) : path_(std::move(path)) {}
  /// Adds what libarchive has found. `contents()` returns the Content of a file; it is called for files only.
  template <class Contents>
  void add(archive_entry* entry, const std::string& name, Contents contents) {
    const char* hard = archive_entry_hardlink(entry);
    if (hard == nullptr) hard = archive_entry_hardlink_utf8(entry);
    const auto type = archive_entry_filetype(entry);
    if (hard != nullptr) {  // cpio, and tars of other programs, have the contents with the last of several links
      const bool has_contents = archive_entry_size_is_set(entry) != 0 && archive_entry_size(entry) > 0;
      add_hard_link(name, hard, has_contents ? std::optional<Content>(contents()) : std::nullopt);
    } else if (type == AE_IFDIR) {
      put(name, {.kind = Kind::folder});
    } else if (type == AE_IFREG) {
      add_file(name, contents());
    } else if (type == AE_IFLNK) {
      const char* target = archive_entry_symlink(entry);
      if (target == nullptr) target = archive_entry_symlink_utf8(entry);
      put(name, {.kind = Kind::link, .target = target != nullptr ? target : ""});
    } else {
      put(name, {.kind = Kind::other});
    }
  }
  /// Gives `tree` all files, folders, and links that lead nowhere.
  void hand_over(FileTree& tree);

 private:
  enum class Kind { file, folder, link, other };
  struct Node {
    Kind kind = Kind::file;
    std::size_t content = 0;  ///< of a file
    std::string target = {};  ///< of a link
  };
  /// A link to a folder that is being followed, and where the way to it began.
  struct Followed {
    std::string link, from;
  };

  void put(const std::string& name, Node node);
  void add_file(const std::string& name, Content content);
  void add_hard_link(const std::string& name, const std::string& target, std::optional<Content> content);
  std::optional<std::string> real_name(const std::string& link) const;
  bool is_folder(const std::string& name) const;
  void emit(FileTree& tree, const std::string& as, const std::string& name, const Node& node,
            std::vector<Followed>& way);
  void follow(FileTree& tree, const std::string& as, const std::string& name, const Node& link,
              std::vector<Followed>& way);

  std::string path_;
  std::vector<Content> contents_;
  std::map<std::string, Node> nodes_;  ///< by name
  std::size_t twice_ = 0, linked_ = 0;
  std::string first_twice_;
};

}  // namespace lockstep::data
