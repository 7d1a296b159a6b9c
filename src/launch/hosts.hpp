// Hosts and their slots: from a list, a hostfile or a discovery script.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/child.hpp"

namespace lockstep::launch {

struct Host {
  std::string name;
  int slots = 1;  ///< ranks that it can run
  bool operator==(const Host&) const = default;
};
using Hosts = std::vector<Host>;

/// "a:2,b" -> a with 2 slots, b with 1. Slots of a host named twice add up. Throws Error(usage) with `place`.
[[nodiscard]] Hosts parse_hosts(const std::string& list, const std::string& place = "--hosts");

/// Lines "a slots=2", "a:2" or "a"; # begins a comment.
[[nodiscard]] Hosts parse_hostfile(const std::string& text, const std::string& place);
[[nodiscard]] Hosts read_hostfile(const std::string& path);

/// Time limit of a discovery script.
inline constexpr std::chrono::seconds kDiscoveryPatience{30};

/// The hosts that a discovery script has printed on stdout, in the format of a hostfile. Its stderr is not parsed, but
/// included in the error. Throws Error(infrastructure) if the script failed or took longer than kDiscoveryPatience,
/// Error(usage) if a line is not a host.
[[nodiscard]] Hosts discovered_hosts(const std::string& script, const BackgroundCommand::Result& result);

/// The first hosts, with at most `ranks` slots in total (0: all of them).
[[nodiscard]] Hosts first_slots(const Hosts& hosts, int ranks);

[[nodiscard]] int count_slots(const Hosts& hosts);
[[nodiscard]] std::string to_text(const Hosts& hosts);  ///< "a:2,b:1"

/// "a.example" -> "a". Open MPI also distinguishes machines by this label.
[[nodiscard]] std::string first_label(const std::string& name);
[[nodiscard]] std::string own_host_name();  ///< as the kernel knows it

/// Whether it is a name of this machine; each name is looked up only once. Thread-safe.
[[nodiscard]] bool is_local(const std::string& host);
/// Whether one of the name's addresses belongs to an interface of this machine; nullopt if it has no address.
[[nodiscard]] std::optional<bool> has_own_address(const std::string& host);
/// Whether `host` is the machine with the host name `own`: by names, and by addresses if a full name and a short one
/// have the same first label.
using AddressLookup = std::function<std::optional<bool>(const std::string& host)>;
[[nodiscard]] bool is_this_machine(const std::string& host, const std::string& own, const AddressLookup& is_own);
/// Whether two names may belong to one machine: names with a domain are compared completely (gpu.rack1 is not
/// gpu.rack2), a name without one by its first label.
[[nodiscard]] bool same_machine(const std::string& one, const std::string& other);

}  // namespace lockstep::launch
