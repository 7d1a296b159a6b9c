#include "launch/pod/role.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.hpp"

namespace lockstep::launch {

PodRole role_of(const Hosts& hosts, const std::string& own_name, const std::string& place) {
  const std::string own = first_label(own_name);
  const auto is_own = [&](const Host& host) { return first_label(host.name) == own; };
  if (!hosts.empty() && is_own(hosts.front())) return PodRole::leader;
  if (std::any_of(hosts.begin(), hosts.end(), is_own)) return PodRole::worker;
  throw Error(ExitCode::configuration,
              fmt::format("{}: expected a line for this host, '{}', found {}; the list must name every pod of the job, "
                          "the leader first",
                          place, own_name, hosts.empty() ? "no host" : to_text(hosts)));
}

}  // namespace lockstep::launch
