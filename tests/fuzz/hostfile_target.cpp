// Hostfiles, and the same bytes as a list for --hosts: accepted input can be written as a list, and reads back equal.
#include "fuzz/support.hpp"
#include "launch/hosts.hpp"

using namespace lockstep;

namespace {

void check(const launch::Hosts& hosts) {
  if (hosts.empty()) return;
  fuzz::require(launch::count_slots(hosts) > 0, "hosts have slots");
  for (const auto& host : hosts) fuzz::require(host.slots > 0, "each host has slots");
  fuzz::insist("a list can be read after it was written", [&] {
    fuzz::require(launch::parse_hosts(launch::to_text(hosts)) == hosts, "hosts are the same after they were written");
  });
  fuzz::require(launch::count_slots(launch::first_slots(hosts, 1)) == 1, "of hosts one slot can be taken");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::text_of(data, size));
  launch::Hosts hosts;
  if (fuzz::accepts([&] { hosts = launch::parse_hostfile(text, "hostfile"); })) check(hosts);
  if (fuzz::accepts([&] { hosts = launch::parse_hosts(text); })) check(hosts);
  return 0;
}
