#include "core/cache_room.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <vector>

#include "core/files.hpp"

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

void add_entries(const std::string& folder, bool of_objects, std::vector<Entry>& entries) {
  std::error_code failed;
  for (const auto& file : fs::directory_iterator(folder, failed)) {
    const std::string name = file.path().filename().string();
    const bool ours = of_objects || name.starts_with(kIndexPrefix) || name.starts_with(kUnpackedPrefix);
    if (!ours || name.ends_with(kNewFileEnding)) continue;
    std::error_code gone;  // another process may be making room, too
    const auto bytes = file.file_size(gone);
    const auto used = file.last_write_time(gone);
    if (!gone) entries.push_back({used, bytes, file.path()});
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
  add_entries(cache, false, entries);
  add_entries(cache + "/" + kObjectsFolder, true, entries);
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
