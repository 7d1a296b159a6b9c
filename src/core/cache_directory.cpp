#include "core/cache_directory.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/files.hpp"
#include "core/ran_time.hpp"
#include "core/say.hpp"
#include "lockstep/error.hpp"

namespace lockstep {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string cache_directory() {
  if (const std::string own = variable("LOCKSTEP_CACHE"); !own.empty()) return own == "none" ? "" : own;
  if (const std::string cache = variable("XDG_CACHE_HOME"); cache.starts_with('/')) return cache + "/lockstep";
  const std::string home = variable("HOME");
  return home.starts_with('/') && home != "/" ? home + "/.cache/lockstep" : "";
}

std::uint64_t cache_limit() {
  const std::string text = variable("LOCKSTEP_CACHE_LIMIT");
  if (text.empty()) return 0;
  std::uint64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, text.data() + text.size());
  for (const auto& [name, shift] : {std::pair{"", 0}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}}) {
    if (failed == std::errc() && unit == name && number <= UINT64_MAX >> shift) return number << shift;
  }
  throw Error(ExitCode::configuration,
              "LOCKSTEP_CACHE_LIMIT: expected bytes, as in 20GiB or 500MiB, found '" + text + "'");
}

namespace {

constexpr std::chrono::milliseconds kAgain{20};

std::string own_signature() {
  std::array<char, 256> host{};
  (void)::gethostname(host.data(), host.size() - 1);
  return fmt::format("process {} on {}", ::getpid(), host.data());
}

std::string holder_of(const std::string& lock) {
  const std::string signature = read_whole_file(lock).value_or("");
  return signature.empty() ? "another process" : signature;
}

double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

void wait_for(LockedFile& lock, const CacheWait& wait, bool& locked) {
  RanTime waited;
  bool announced = false;
  while (!(locked = lock.try_lock()) && waited.look() < wait.limit) {
    if (!announced && waited.look() >= wait.announce) {
      announced = true;
      say("lockstep: warning: waiting for {}, which holds {}; at most {:.0f} s\n", holder_of(lock.path()), lock.path(),
          seconds(wait.limit));
    }
    std::this_thread::sleep_for(kAgain);
  }
  if (!locked && announced) {
    say("lockstep: warning: {} has held {} for {:.0f} s: going on without it; end that process if it hangs\n",
        holder_of(lock.path()), lock.path(), seconds(wait.limit));
  }
}

}  // namespace

CacheLock lock_to_make(const std::string& entry, const CacheWait& wait) {
  CacheLock lock;
  try {
    auto file = std::make_unique<LockedFile>(entry + ".lock");
    bool locked = file->try_lock();
    if (!locked && wait.limit.count() > 0) {
      lock.waited = true;
      wait_for(*file, wait, locked);
    }
    if (!locked) return lock;
    file->write(own_signature());
    lock.file = std::move(file);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): a cache without locks
  }
  return lock;
}

void unlock_made(CacheLock& lock) {
  std::error_code ignored;
  if (lock.file) std::filesystem::remove(lock.file->path(), ignored);
  lock.file.reset();
}

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
