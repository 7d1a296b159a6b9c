#include "launch/hosts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>

#include "core/files.hpp"
#include "core/socket_address.hpp"
#include "launch/child.hpp"
#include "lockstep/error.hpp"

namespace lockstep::launch {

namespace {

constexpr int kMaxSlots = 1'000'000;  ///< of all hosts: a larger number is a mistake, and sums must not overflow

[[noreturn]] void bad(const std::string& place, const std::string& expected, const std::string& found) {
  throw Error(ExitCode::usage, fmt::format("{}: expected {}, found '{}'", place, expected, found));
}

int parse_slots(const std::string& text, const std::string& place) {
  int slots = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slots);
  if (error != std::errc{} || end != text.data() + text.size() || slots < 1) {
    bad(place, "a positive number of slots", text);
  }
  return slots;
}

// The name is used in command lines of other programs, so only characters of host names are accepted.
std::string parse_name(const std::string& text, const std::string& place) {
  const bool plain = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
  });
  if (text.empty() || !plain || text.front() == '-') bad(place, "a host's name", text);
  return text;
}

void add(Hosts& hosts, Host host, const std::string& place) {
  if (host.slots > kMaxSlots - count_slots(hosts)) {
    bad(place, fmt::format("at most {} slots in all", kMaxSlots), fmt::format("{}:{}", host.name, host.slots));
  }
  const auto same = std::find_if(hosts.begin(), hosts.end(), [&](const Host& h) { return h.name == host.name; });
  if (same == hosts.end()) {
    hosts.push_back(std::move(host));
  } else {
    same->slots += host.slots;
  }
}

Host parse_host(const std::string& word, const std::string& place) {
  const auto colon = word.find(':');
  Host host{parse_name(word.substr(0, colon), place), 1};
  if (colon != std::string::npos) host.slots = parse_slots(word.substr(colon + 1), place);
  return host;
}

}  // namespace

Hosts parse_hosts(const std::string& list, const std::string& place) {
  Hosts hosts;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) add(hosts, parse_host(word, place), place);
  if (hosts.empty()) bad(place, "hosts such as a:2,b:2", list);
  return hosts;
}

Hosts parse_hostfile(const std::string& text, const std::string& place) {
  Hosts hosts;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::string here = fmt::format("{}:{}", place, number);
    std::istringstream words(line.substr(0, line.find('#')));
    std::string word;
    if (!(words >> word)) continue;
    Host host = parse_host(word, here);
    while (words >> word) {
      if (!word.starts_with("slots=")) bad(here, "a host, then slots=N", word);
      host.slots = parse_slots(word.substr(6), here);
    }
    add(hosts, std::move(host), here);
  }
  return hosts;
}

Hosts read_hostfile(const std::string& path) {
  const auto text = read_whole_file(path);
  if (!text) throw Error(ExitCode::usage, fmt::format("--hostfile: cannot read '{}'", path));
  Hosts hosts = parse_hostfile(*text, path);
  if (hosts.empty()) throw Error(ExitCode::usage, fmt::format("{}: expected one host per line, found none", path));
  return hosts;
}

Hosts discovered_hosts(const std::string& script, const BackgroundCommand::Result& result) {
  if (result.code == 0) return parse_hostfile(result.output, script);
  std::string said = result.errors.empty() ? result.output : result.errors;
  said.erase(said.find_last_not_of(" \n") + 1);
  const std::string what = result.code == 124 ? fmt::format("took longer than {} s", kDiscoveryPatience.count())
                                              : fmt::format("ended with {}", result.code);
  throw Error(ExitCode::infrastructure, fmt::format("--discover: '{}' {}: {}", script, what, said));
}

Hosts first_slots(const Hosts& hosts, int ranks) {
  if (ranks == 0) return hosts;
  Hosts chosen;
  for (const Host& host : hosts) {
    const int slots = std::min(host.slots, ranks);
    if (slots > 0) chosen.push_back({host.name, slots});
    ranks -= slots;
  }
  return chosen;
}

int count_slots(const Hosts& hosts) {
  int slots = 0;
  for (const Host& host : hosts) slots += host.slots;
  return slots;
}

std::string to_text(const Hosts& hosts) {
  std::vector<std::string> words;
  for (const Host& host : hosts) words.push_back(fmt::format("{}:{}", host.name, host.slots));
  return fmt::format("{}", fmt::join(words, ","));
}

std::string first_label(const std::string& name) {
  return name.substr(0, name.find('.'));
}

std::string own_host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

bool same_machine(const std::string& one, const std::string& other) {
  const bool both_full = one.find('.') != std::string::npos && other.find('.') != std::string::npos;
  return both_full ? one == other : first_label(one) == first_label(other);
}

std::optional<bool> has_own_address(const std::string& host) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return std::nullopt;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> own(interfaces, &freeifaddrs);
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    const std::string wanted = ip_text(address->ai_addr);
    if (wanted.starts_with("127."))
      return true;  // all of 127.0.0.0/8 is the loopback interface, which lists only the first address
    for (const ifaddrs* one = interfaces; one != nullptr; one = one->ifa_next) {
      if (one->ifa_addr != nullptr && ip_text(one->ifa_addr) == wanted) return true;
    }
  }
  return false;
}

bool is_this_machine(const std::string& host, const std::string& own, const AddressLookup& is_own) {
  if (host == "localhost" || host == "127.0.0.1" || host == "::1" || host == own) return true;
  if (!same_machine(host, own)) return false;
  // With a full name and a short one, `gpu` may be gpu.rack1 or gpu.rack2, so addresses decide. A name without an
  // address is trusted.
  return is_own(host).value_or(true);
}

bool is_local(const std::string& host) {
  // Cached, because the supervisor asks in its loop, and a name server may take seconds.
  static std::mutex mutex;
  static std::map<std::string, bool> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(host);
  if (found != known.end()) return found->second;
  return known[host] = is_this_machine(host, own_host_name(), has_own_address);
}

}  // namespace lockstep::launch
