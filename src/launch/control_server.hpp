// The supervisor's end of the control sockets: listens, accepts connections that prove to know the token, and passes
// their messages on.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/spans.hpp"
#include "launch/control_socket.hpp"
#include "launch/listening.hpp"

namespace lockstep::launch {

/// A message from a rank; `word` is empty if its socket was closed.
struct RankMessage {
  int rank = 0;
  std::string word, rest;
};

class ControlServer {
 public:
  /// `token`: the secret that a rank must have. `ranks`: number of connections to expect; raises this process's limit
  /// of open files as far as allowed, and throws Error(usage) if that is too low. Throws Error(infrastructure) if it
  /// cannot listen.
  ControlServer(std::string token, int ranks, const Listening& where);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  /// "10.0.0.1:4711,[fd00::1]:4711": for ranks to connect to.
  const std::string& addresses() const { return addresses_; }
  /// Waits until a message arrives, `wake` (another descriptor; -1: none) is readable or time is up. Messages are in
  /// order of arrival, as far as the kernel knows it: if ranks died one after another, the first comes first.
  [[nodiscard]] std::vector<RankMessage> poll(std::chrono::milliseconds patience, int wake);
  void send(int rank, const std::string& line);
  void send_all(const std::string& line);
  /// Connections that have not sent a valid hello.
  std::size_t unidentified() const { return unidentified_; }

 private:
  struct Connection {
    ControlSocket socket;
    int rank = -1;  ///< before its hello
    std::string challenge = {};
    Clock::time_point since = Clock::now();
  };
  void watch(int descriptor, std::uint32_t events) const;
  void listen(const std::string& address);
  void accept_all(int listener);
  void serve(Connection& connection, std::vector<RankMessage>& messages);
  bool identify(Connection& connection, std::string& line);
  void close(int descriptor);
  void drop_unidentified();

  std::string token_, addresses_;
  std::vector<int> listeners_;
  int ready_ = -1;    ///< an epoll, whose list is in the order in which sockets became readable
  int reserve_ = -1;  ///< a spare descriptor, given up when there is no other
  std::unordered_map<int, Connection> connections_;  ///< by descriptor
  std::unordered_map<int, int> descriptor_of_;       ///< by rank
  std::size_t unidentified_ = 0;
  Clock::time_point checked_unidentified_ = Clock::now();
};

}  // namespace lockstep::launch
