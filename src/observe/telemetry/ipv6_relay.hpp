// Passes connections to an IPv6 address on to a port of this host's IPv4 loopback: Debian's library for the metrics
// server knows IPv4 only.
#pragma once

#include <atomic>
#include <string>
#include <thread>

namespace lockstep::telemetry {

class Ipv6Relay {
 public:
  /// `address`: where it listens (::, at IPv6 addresses only), on the port that it passes connections on to. Throws
  /// std::runtime_error if it cannot.
  Ipv6Relay(const std::string& address, int port);
  /// Closes the connections that are open.
  ~Ipv6Relay();
  Ipv6Relay(const Ipv6Relay&) = delete;
  Ipv6Relay& operator=(const Ipv6Relay&) = delete;

 private:
  void serve(int port) const;

  int listener_ = -1;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

}  // namespace lockstep::telemetry
