// Hosts and their slots: from a list, a hostfile or a discovery script.
#pragma once

#include <string>
#include <vector>

namespace lockstep::launch {

struct Host {
  std::string name;
  int slots = 1;  ///< ranks that it takes
  bool operator==(const Host&) const = default;
};
using Hosts = std::vector<Host>;

/// "a:2,b" -> a with 2 slots, b with 1. Slots of a host named twice add up. Throws Error(usage) that says where.
[[nodiscard]] Hosts parse_hosts(const std::string& list, const std::string& place = "--hosts");

/// Lines "a slots=2", "a:2" or "a"; # begins a comment.
[[nodiscard]] Hosts parse_hostfile(const std::string& text, const std::string& place);
[[nodiscard]] Hosts read_hostfile(const std::string& path);

/// Runs the script, which prints lines as a hostfile has them. Throws Error(infrastructure) when it fails or takes
/// longer than 30 s.
[[nodiscard]] Hosts discover_hosts(const std::string& script);

/// The first hosts, with no more than `ranks` slots in all (0: all of them).
[[nodiscard]] Hosts first_slots(const Hosts& hosts, int ranks);

[[nodiscard]] int count_slots(const Hosts& hosts);
[[nodiscard]] std::string to_text(const Hosts& hosts);  ///< "a:2,b:1"

/// "a.example" -> "a". By this label Open MPI, too, tells machines apart.
[[nodiscard]] std::string first_label(const std::string& name);
[[nodiscard]] std::string own_host_name();  ///< as the kernel has it

/// This machine, by one of its names.
[[nodiscard]] bool is_local(const std::string& host);

}  // namespace lockstep::launch
