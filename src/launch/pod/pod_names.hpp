// Which pods of the job run: those whose name the DNS knows. A headless Service has a name for a pod from the moment it
// has an address, ready or not; one that waits for a node has none.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace lockstep::launch {

class PodNames {
 public:
  PodNames();
  ~PodNames();
  PodNames(const PodNames&) = delete;
  PodNames& operator=(const PodNames&) = delete;

  /// Whether the name was resolved when it was looked up last. Never waits: names that are asked for are looked up in
  /// the background, every second at first, every 10 s when nothing changes.
  [[nodiscard]] bool runs(const std::string& name);

 private:
  /// Shared with the thread, which is left alone when it hangs in a look-up.
  struct Shared {
    std::mutex mutex;
    std::condition_variable news;
    std::set<std::string> known, asked, found;  ///< ever asked for; since the last look-up; resolved by it
    bool is_new = false, done = false;
  };
  static void look_up(const std::shared_ptr<Shared>& shared);
  std::shared_ptr<Shared> shared_;
};

}  // namespace lockstep::launch
