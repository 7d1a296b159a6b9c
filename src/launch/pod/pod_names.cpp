#include "launch/pod/pod_names.hpp"

#include <netdb.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace lockstep::launch {
namespace {

constexpr std::chrono::seconds kFirstPause{1}, kLongestPause{10};

bool resolves(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const bool there = getaddrinfo(name.c_str(), nullptr, &hints, &found) == 0;
  if (there) freeaddrinfo(found);
  return there;
}

}  // namespace

PodNames::PodNames() : shared_(std::make_shared<Shared>()) {
  std::thread([shared = shared_] { look_up(shared); }).detach();
}

PodNames::~PodNames() {
  const std::lock_guard lock(shared_->mutex);
  shared_->done = true;
  shared_->news.notify_all();
}

bool PodNames::runs(const std::string& name) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->asked.insert(name).second && shared_->known.insert(name).second) {
    shared_->is_new = true;
    shared_->news.notify_all();
  }
  return shared_->found.contains(name);
}

void PodNames::look_up(const std::shared_ptr<Shared>& shared) {
  auto wait = kFirstPause;
  std::unique_lock lock(shared->mutex);
  while (!shared->done) {
    shared->is_new = false;
    const std::set<std::string> names = std::exchange(shared->asked, {});
    bool changed = false;
    for (const auto& name : names) {
      lock.unlock();
      const bool there = resolves(name);
      lock.lock();
      changed |= there != shared->found.contains(name);
      if (there) {
        shared->found.insert(name);
      } else {
        shared->found.erase(name);
      }
      if (shared->done) return;
    }
    wait = changed ? kFirstPause : std::min(2 * wait, kLongestPause);
    shared->news.wait_for(lock, wait, [&] { return shared->done || shared->is_new; });
  }
}

}  // namespace lockstep::launch
