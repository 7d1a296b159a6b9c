// Which pod leads where any of them may: the one that holds the lock on a file that all pods share.
//
// The first host of the list leads a new job. When it is gone, however it went, its lock ends with it, and another pod
// takes the lead: the job goes on while Kubernetes replaces the lost pod, which then works for whoever leads. So
// nothing has to tell a dead node from one that is cut off. One that lives keeps its lock, and with it the lead.
#pragma once

#include <memory>
#include <string>

#include "core/files.hpp"

namespace lockstep::launch {

/// When a pod may take a vacant lead, in seconds of any clock. Pure.
class Vacancy {
 public:
  /// `first`: leads as soon as nobody does. Another pod waits for `after_leader` when it has seen a leader in its time,
  /// and for `after_none` when it has not: all pods may just have started, and the first host is about to.
  Vacancy(bool first, double after_leader, double after_none, double now)
      : first_(first), after_leader_(after_leader), after_none_(after_none), seen_(now) {}

  /// Somebody leads.
  void seen(double now) {
    seen_ = now;
    has_seen_ = true;
  }
  bool has_seen_a_leader() const { return has_seen_; }
  /// Since the last leader, or since the pod has started.
  double seconds(double now) const { return now - seen_; }
  /// `begun`: the job has been started before. One that has not waits for its first host, which wants all hosts.
  bool may_take(bool begun, double now) const {
    return first_ || (begun && seconds(now) >= (has_seen_ ? after_leader_ : after_none_));
  }

 private:
  bool first_, has_seen_ = false;
  double after_leader_, after_none_, seen_;
};

struct SuccessionOptions {
  std::string file;  ///< in a folder that all pods share; made if it is missing
  std::string name;  ///< of this pod
  bool first = false;
  double after_leader = 5, after_none = 300;  ///< seconds
};

class Succession {
 public:
  /// Throws Error(cannot_create) if the file cannot be used.
  explicit Succession(const SuccessionOptions& options);

  /// To be called repeatedly. Returns true once this pod leads; it does so until it ends. Processes of a launch on this
  /// host belong to a leader, so the file is asked only where there are none. Throws Error(cannot_create).
  [[nodiscard]] bool leads();
  /// For the leader: the job starts. Signs the file. Throws Error(cannot_create).
  void begin();
  /// Whether the job had been started before this pod led.
  bool begun() const { return begun_; }
  /// Whether this pod has seen another one lead.
  bool has_seen_a_leader() const { return vacancy_.has_seen_a_leader(); }
  /// Seconds without a leader.
  double vacant_seconds() const;
  /// Whether nobody is known to lead; asked by a pod that does not.
  [[nodiscard]] bool is_vacant();
  /// The name of the pod that has started the job last; empty: there was none.
  std::string leader() const;

 private:
  [[nodiscard]] bool look(double now);
  [[noreturn]] void cannot_use(const std::string& why) const;

  std::string name_, path_;
  std::unique_ptr<LockedFile> file_;
  Vacancy vacancy_;
  double next_look_ = 0;
  std::string problem_;  ///< why the last look failed
  bool begun_ = false;
};

}  // namespace lockstep::launch
