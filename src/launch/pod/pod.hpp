// `lockstep pod`: the program of every container of a job on Kubernetes, leader or worker.
//
// tini would replace init (90 lines) for one more package, and would not wait until killed ranks have let go of devices
// and locks. A Lease is not fenced from the run directory as a lock of its file server is, and needs rights in the API.
// The Job's own restart of index 0 takes its back-off, and forever if the node is lost; succession takes seconds.
#pragma once

#include <string>
#include <vector>

#include "launch/hosts.hpp"
#include "launch/pod/preflight.hpp"

namespace lockstep::launch {

enum class PodRole {
  leader,  ///< the first host: runs the supervisor, and ranks like the others
  worker,  ///< runs ranks
};

/// By the first label of `own_name`. Throws Error(configuration) for a host that is not in the list.
[[nodiscard]] PodRole role_of(const Hosts& hosts, const std::string& own_name, const std::string& place);

struct PodOptions {
  std::string hostfile = "/etc/lockstep/hosts";
  std::string name;  ///< this pod's name in the hostfile; empty: its host name
  std::string job;   ///< a job file; empty: the embedded digits
  std::string key = "/etc/lockstep/ssh/key";
  std::string state = "/run/lockstep";  ///< a directory of this pod only
  std::string termination_log;          ///< a file; empty: none
  std::string log = "people";
  std::vector<std::string> launch_words;  ///< for `lockstep launch` or `sweep`, or for `lockstep bench hosts`
  int port = 2222;
  PreflightLimits preflight;
  double grace_seconds = 3600;   ///< for the ranks when a worker is stopped
  double leader_seconds = 3600;  ///< how long a worker waits for a missing leader; 0: forever
  std::string leader_lock;       ///< a file that all pods share: any of them may lead; empty: the first host only
  double takeover_seconds = 5;   ///< how long nobody leads until another pod does
  bool sweep = false;            ///< the job file is a sweep file, and the leader searches: `lockstep sweep`
  bool report = false;           ///< run a report on the hosts instead of the job
  std::string check_hosts;       ///< the report's options, if it must find no problem before the job begins
  std::string unfit_node;        ///< what Kubernetes is told when this pod's node is unfit; empty: nothing
  std::string service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
  bool keeps_workers = false;  ///< workers are not notified that the job has ended
};

/// Becomes the first process of the pod, and returns its exit code. Throws Error after writing it to the termination
/// log.
int run_pod(const PodOptions& options);

/// `lockstep pod --end CODE`, which the leader runs on the others: notifies this pod that the job has ended, and how;
/// or with `unfit_host` that it is left out, for the reason on stdin.
int end_pod(int code);

/// `lockstep pod --probe`: 0 if the sshd of this pod accepts connections, else 1.
int probe_pod(int port);

}  // namespace lockstep::launch
