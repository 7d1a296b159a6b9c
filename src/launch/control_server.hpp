// The supervisor's end of the control sockets: listens, takes connections that know the token, hands on what they say.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "launch/control_socket.hpp"

namespace lockstep::launch {

/// What a rank said; `word` is empty when its socket was closed.
struct RankMessage {
  int rank = 0;
  std::string word, rest;
};

class ControlServer {
 public:
  /// `local`: takes connections of this machine only. Throws Error(infrastructure).
  ControlServer(std::string token, bool local);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  /// "10.0.0.1:4711,127.0.0.1:4711": where ranks find it.
  [[nodiscard]] const std::string& addresses() const { return addresses_; }
  /// Waits until something comes, `wake` (another descriptor; -1: none) is readable or time is up. What came is in the
  /// order in which it came, as far as the kernel tells: of ranks that died one after the other the first comes first.
  [[nodiscard]] std::vector<RankMessage> poll(std::chrono::milliseconds patience, int wake);
  void send(int rank, const std::string& line);
  void send_all(const std::string& line);

 private:
  void watch(int descriptor, std::uint32_t events) const;
  void accept_all();
  void serve(ControlSocket& socket, int& rank, std::vector<RankMessage>& messages);

  struct Connection {
    ControlSocket socket;
    int rank = -1;  ///< before its hello
  };
  std::string token_, addresses_;
  int listener_ = -1, ready_ = -1;  ///< an epoll: its list is in the order in which sockets became readable
  std::vector<Connection> connections_;
};

}  // namespace lockstep::launch
