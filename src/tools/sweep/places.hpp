// Where trials are trained: slots of this machine, or of several hosts, of which some may not answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/host_pool.hpp"
#include "tools/sweep/sweep.hpp"

namespace lockstep::sweep {

struct Place {
  std::string host;    ///< empty: this machine, of a sweep without hosts
  int first_rank = 0;  ///< of those that its host can run: says which GPUs the slot has
};

class Places {
 public:
  /// Waits a moment for the hosts to answer.
  explicit Places(const SweepRunOptions& options);

  std::size_t count() const { return places_.size(); }
  const Place& operator[](std::size_t slot) const { return places_[slot]; }
  /// Whether a trial can be started there.
  bool usable(std::size_t slot) const;
  /// What a slot shares its faults with: "host b"; "slot 2", if `own_device` says that it has a GPU of its own; or
  /// "this machine".
  std::string name(std::size_t slot, bool own_device) const;
  /// Hears what hosts have answered; never waits. Returns what is to be said of them.
  std::vector<std::string> refresh();
  /// For a trial that has ended early: asks its host, and returns whether that has gone.
  [[nodiscard]] bool gone(std::size_t slot);
  /// Keys of object stores, for trials there. Returns false if the host does not take them: it is left out then.
  [[nodiscard]] bool give_secrets(std::size_t slot, const std::string& mark);
  /// Ends what a sweep with this mark has left on the hosts, and removes its secrets.
  void end_processes(const std::string& mark);

 private:
  std::optional<launch::HostPool> pool_;
  launch::Hosts holders_;  ///< may have keys in their memory
  std::vector<Place> places_;
};

}  // namespace lockstep::sweep
