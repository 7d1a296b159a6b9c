// The role of a pod in its job.
#pragma once

#include <string>

#include "launch/hosts.hpp"

namespace lockstep::launch {

enum class PodRole {
  leader,  ///< the first host: runs the supervisor, and ranks like the others
  worker,  ///< takes ranks
};

/// By the first label of `own_name`. Throws Error(configuration) for a host that is not in the list.
[[nodiscard]] PodRole role_of(const Hosts& hosts, const std::string& own_name, const std::string& place);

}  // namespace lockstep::launch
