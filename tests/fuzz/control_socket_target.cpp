// The control socket, over loopback: a rank that says hello and then anything, and one that says anything at once. A
// NUL in the input separates two sends.
#include <sys/socket.h>
#include <unistd.h>

#include "core/digest.hpp"
#include "fuzz/support.hpp"
#include "launch/control_server.hpp"

using namespace lockstep;

namespace {

constexpr std::chrono::milliseconds kPatience{20'000};

/// Sends the pieces and closes by a reset, so that no port is left waiting.
class Speaker {
 public:
  explicit Speaker(const std::string& addresses) : socket_(launch::ControlSocket::connect(addresses, kPatience)) {
    fuzz::require(socket_.open(), "the server takes connections");
    const linger at_once{1, 0};
    ::setsockopt(socket_.descriptor(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  }
  void say(std::string_view text) {
    while (!text.empty()) {
      const auto sent = ::send(socket_.descriptor(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;  // the server hung up, as it may
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  /// What the server asks of it.
  [[nodiscard]] std::string challenge(launch::ControlServer& server) {
    std::vector<std::string> lines;
    while (lines.empty() && socket_.read_lines(lines)) (void)server.poll(std::chrono::milliseconds(100), -1);
    fuzz::require(!lines.empty() && lines.front().starts_with("challenge "), "the server asks for a proof");
    return lines.front().substr(10);
  }
  void end() { ::shutdown(socket_.descriptor(), SHUT_WR); }
  /// Whether the server has hung up.
  [[nodiscard]] bool was_dropped() {
    std::vector<std::string> lines;
    return !socket_.read_lines(lines);
  }

 private:
  launch::ControlSocket socket_;
};

/// Everything that the server reports about one connection, until it has dropped it.
std::vector<launch::RankMessage> hear(launch::ControlServer& server, bool knows_token, std::string_view said) {
  Speaker speaker(server.addresses());
  std::vector<launch::RankMessage> heard;
  const auto poll = [&](std::chrono::milliseconds patience) {
    for (auto& message : server.poll(patience, -1)) heard.push_back(std::move(message));
  };
  const std::string challenge = speaker.challenge(server);
  if (knows_token) speaker.say("hello " + hmac_sha256("token", challenge) + " 3 4 1 host\n");
  while (!said.empty()) {
    const auto cut = said.find('\0');
    speaker.say(said.substr(0, cut));
    said.remove_prefix(cut == std::string_view::npos ? said.size() : cut + 1);
    poll(std::chrono::milliseconds(0));
  }
  speaker.end();
  while (!speaker.was_dropped()) poll(std::chrono::milliseconds(100));
  return heard;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static launch::ControlServer server("token", 1024, launch::listening_on_loopback());
  const std::string_view said = fuzz::text_of(data, size);
  fuzz::require(hear(server, false, said).empty(), "without the token nobody is heard");
  const auto heard = hear(server, true, said);
  fuzz::require(heard.size() >= 2 && heard.front().word == "hello" && heard.back().word.empty(),
                "a rank that knows the token is heard from its hello to its end");
  for (const auto& message : heard) {
    fuzz::require(message.rank == 3, "messages are of the rank that said hello");
    fuzz::require(message.rest.find('\n') == std::string::npos, "a message is a line");
    std::string rest = message.rest;
    (void)launch::take_number(rest);
    (void)launch::one_line(rest);
  }
  return 0;
}
