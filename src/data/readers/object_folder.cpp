// FileTree of what lies below a key of an object store: the keys are listed once, objects are read through this host's
// cache.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "data/archive.hpp"
#include "data/store/object.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

class ObjectFolder final : public FileTree {
 public:
  ObjectFolder(const std::string& path, ByteCounter counter)
      : FileTree(path), location_(store::parse_location(path)), counter_(std::move(counter)) {}

  // A file's "offset" is its version.
  void list() override {
    for (const auto& object : listed()) {
      const std::string name = name_in(object.key);
      if (name.ends_with('/')) continue;  // made by programs that want to see empty folders
      add_file(name, store::fingerprint_of(object.version), object.size);
      for (auto slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
        add_folder(name.substr(0, slash));
      }
    }
    sort();
    require_different_names();
  }

  std::string look_up(Entry& entry, IndexNotes* notes) const override {
    if (notes != nullptr) notes->made_from_folder(path());
    const auto& objects = by_name();
    const auto found = objects.find(clean_name(entry.name));
    if (found == objects.end()) return fmt::format("{}/{}: there is no such object", path(), entry.name);
    entry.offset = store::fingerprint_of(found->second.version);
    entry.size = found->second.size;
    return "";
  }

  std::span<const std::byte> read(const Entry& entry, std::uint64_t from, std::uint64_t length,
                                  std::vector<std::byte>& scratch) const override {
    const store::Object object(stored(entry.name), entry.size, entry.offset);
    scratch.resize(length);
    object.read(from, scratch);
    *counter_ += length;
    return scratch;
  }

 private:
  std::vector<store::ObjectInfo> listed() const { return store::client().list(location_); }
  std::string name_in(const std::string& key) const {
    return key.substr(location_.key.empty() ? 0 : location_.key.size() + 1);
  }
  /// Listed once.
  const std::map<std::string, store::ObjectInfo>& by_name() const {
    std::call_once(listed_once_, [this] {
      for (auto& object : listed()) objects_.try_emplace(clean_name(name_in(object.key)), std::move(object));
    });
    return objects_;
  }
  /// The path of an object, whose letters may be decomposed where its name's are composed.
  std::string stored(const std::string& name) const {
    const bool ascii = std::all_of(name.begin(), name.end(), [](char c) { return static_cast<signed char>(c) >= 0; });
    const auto found = ascii ? objects_.end() : by_name().find(clean_name(name));
    return found == objects_.end() ? path() + "/" + name
                                   : store::ObjectLocation{location_.bucket, found->second.key}.text();
  }

  store::ObjectLocation location_;
  ByteCounter counter_;
  mutable std::once_flag listed_once_;
  mutable std::map<std::string, store::ObjectInfo> objects_;
};

}  // namespace

std::unique_ptr<FileTree> open_object_folder(const std::string& path, const ByteCounter& counter) {
  return std::make_unique<ObjectFolder>(path, counter);
}

}  // namespace lockstep::data
