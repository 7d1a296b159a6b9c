#include "core/cache_lock.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <thread>

#include "core/ran_time.hpp"
#include "core/say.hpp"
#include "core/whole_file.hpp"
#include "lockstep/error.hpp"

namespace lockstep {

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

}  // namespace lockstep
