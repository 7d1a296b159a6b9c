// FileTree of what lies below a key of an object store: the keys are listed once, objects are read through this host's
// cache.
#include <fmt/format.h>

#include <algorithm>

#include "data/archive.hpp"
#include "lockstep/error.hpp"
#include "store/object.hpp"

namespace lockstep::data {
namespace {

class ObjectFolder final : public FileTree {
 public:
  ObjectFolder(const std::string& path, ByteCounter counter)
      : FileTree(path), location_(store::parse_location(path)), counter_(std::move(counter)) {}

  // A file's "offset" is its version.
  void list() override {
    for (const auto& object : listed()) {
      const std::string name = object.key.substr(location_.key.empty() ? 0 : location_.key.size() + 1);
      if (name.ends_with('/')) continue;  // made by programs that want to see empty folders
      add_file(name, store::fingerprint_of(object.version), object.size);
      for (auto slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
        add_folder(name.substr(0, slash));
      }
    }
    sort();
  }

  std::string look_up(Entry& entry, IndexNotes* notes) const override {
    if (notes != nullptr) notes->made_from_folder(path());
    if (objects_.empty()) objects_ = listed();
    const std::string key = (location_.key.empty() ? "" : location_.key + "/") + entry.name;
    const auto found = std::lower_bound(objects_.begin(), objects_.end(), key,
                                        [](const auto& object, const auto& wanted) { return object.key < wanted; });
    if (found == objects_.end() || found->key != key) {
      return fmt::format("{}/{}: there is no such object", path(), entry.name);
    }
    entry.offset = store::fingerprint_of(found->version);
    entry.size = found->size;
    return "";
  }

  [[nodiscard]] std::span<const std::byte> read(const Entry& entry, std::uint64_t from, std::uint64_t length,
                                                std::vector<std::byte>& scratch) const override {
    const store::Object object(path() + "/" + entry.name, entry.size, entry.offset);
    scratch.resize(length);
    object.read(from, scratch);
    *counter_ += length;
    return scratch;
  }

 private:
  [[nodiscard]] std::vector<store::ObjectInfo> listed() const { return store::client().list(location_); }

  store::Location location_;
  ByteCounter counter_;
  mutable std::vector<store::ObjectInfo> objects_;  ///< of look_up()
};

}  // namespace

std::unique_ptr<FileTree> open_object_folder(const std::string& path, const ByteCounter& counter) {
  return std::make_unique<ObjectFolder>(path, counter);
}

}  // namespace lockstep::data
