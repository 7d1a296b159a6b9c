#include "core/cache_room.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <initializer_list>
#include <string_view>
#include <system_error>
#include <vector>

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kFreePart = 20;         // a twentieth of the disk stays free
constexpr std::chrono::seconds kUsedAgain{60};  // after which a use is noted again

struct Entry {
  fs::file_time_type used;
  std::uint64_t bytes;
  fs::path path;
};

/// A prefix, then hexadecimal digits and dashes: neither a file of others, nor a lock, nor one that is being written.
bool is_entry(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix) || name.size() == prefix.size()) return false;
  return name.find_first_not_of("0123456789abcdef-", prefix.size()) == std::string_view::npos;
}

void add_entries(const std::string& folder, std::initializer_list<std::string_view> prefixes,
                 std::vector<Entry>& entries) {
  std::error_code failed;
  for (const auto& file : fs::directory_iterator(folder, failed)) {
    const std::string name = file.path().filename().string();
    const auto has = [&](std::string_view prefix) { return is_entry(name, prefix); };
    if (std::none_of(prefixes.begin(), prefixes.end(), has)) continue;
    std::array<std::error_code, 3> gone;  // another process may be making room, too
    const bool regular = fs::is_regular_file(file.symlink_status(gone[0]));
    const auto bytes = file.file_size(gone[1]);
    const auto used = file.last_write_time(gone[2]);
    if (regular && !gone[0] && !gone[1] && !gone[2]) entries.push_back({used, bytes, file.path()});
  }
}

}  // namespace

void make_room(const std::string& cache, std::uint64_t limit, const std::string& added, const DiskSpace& space) {
  fs::space_info disk{};
  try {
    disk = space(cache);
  } catch (const fs::filesystem_error&) {
    return;
  }
  std::vector<Entry> entries;
  add_entries(cache, {kIndexPrefix, kUnpackedPrefix}, entries);
  add_entries(cache + "/" + kObjectsFolder, {""}, entries);
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.used < b.used; });
  std::uint64_t all = 0;
  for (const auto& entry : entries) all += entry.bytes;
  const std::uint64_t wanted = disk.capacity / kFreePart;
  std::uint64_t too_much = disk.available < wanted ? wanted - disk.available : 0;
  if (limit > 0 && all > limit) too_much = std::max(too_much, all - limit);
  for (const auto& entry : entries) {
    if (too_much == 0) return;
    if (entry.path == added) continue;
    std::error_code failed;  // another process may have taken it
    if (fs::remove(entry.path, failed)) too_much -= std::min(too_much, entry.bytes);
  }
}

void note_use(const std::string& entry) {
  std::error_code failed;
  const auto now = fs::file_time_type::clock::now();
  const auto used = fs::last_write_time(entry, failed);
  if (!failed && now - used > kUsedAgain) fs::last_write_time(entry, now, failed);
}

}  // namespace lockstep
