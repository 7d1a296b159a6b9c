// The control sockets: who is heard, whose connection is closed, and where the supervisor listens.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/digest.hpp"
#include "launch/control_server.hpp"
#include "lockstep/error.hpp"

namespace lockstep::launch {
namespace {

using namespace std::chrono_literals;

std::vector<RankMessage> heard(ControlServer& server, std::size_t count) {
  std::vector<RankMessage> all;
  for (int i = 0; i < 1000 && all.size() < count; ++i) {
    for (auto& message : server.poll(20ms, -1)) all.push_back(message);
  }
  return all;
}

/// A line that the server has sent, or "" if it has hung up.
std::string line_from(ControlServer& server, ControlSocket& socket) {
  std::vector<std::string> lines;
  for (bool open = true; open && lines.empty();) {
    EXPECT_TRUE(server.poll(5ms, -1).empty());
    open = socket.read_lines(lines);
  }
  return lines.empty() ? "" : lines.front();
}

/// The first word of a rank that knows the token; sent with its next one.
ControlSocket connect(ControlServer& server, const std::string& hello, const std::string& token = "token") {
  ControlSocket rank = ControlSocket::connect(server.addresses(), 5000ms);
  EXPECT_TRUE(rank.open());
  std::string challenge = line_from(server, rank);
  EXPECT_EQ(take_word(challenge), "challenge");
  EXPECT_EQ(challenge.size(), 32U);
  rank.queue("hello " + hmac_sha256(token, challenge) + " " + hello);
  return rank;
}

TEST(ControlServer, HearsWhoKnowsTheTokenAndSeesItsEnd) {
  ControlServer server("token", 8, listening_on_loopback());
  ControlSocket rank = connect(server, "3 4 123 host-a");
  rank.queue("beat 1 2 3");
  ASSERT_TRUE(rank.flush());
  const auto messages = heard(server, 2);
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(messages[0].rank, 3);
  EXPECT_EQ(messages[0].word, "hello");
  EXPECT_EQ(messages[0].rest, "4 123 host-a");
  EXPECT_EQ(messages[1].word, "beat");

  server.send(3, "stop");
  std::vector<std::string> lines;
  for (int i = 0; i < 1000 && lines.empty(); ++i) {
    EXPECT_TRUE(rank.read_lines(lines));
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(lines, std::vector<std::string>{"stop"});

  rank = ControlSocket();
  const auto end = heard(server, 1);
  ASSERT_EQ(end.size(), 1U);
  EXPECT_EQ(end[0].rank, 3);
  EXPECT_EQ(end[0].word, "");
}

// A rank that dies takes others with it within milliseconds: the first one must be named.
TEST(ControlServer, EndsAreHeardInTheirOrder) {
  ControlServer server("token", 8, listening_on_loopback());
  std::vector<ControlSocket> ranks(4);
  for (int r = 0; r < 4; ++r) ranks[static_cast<std::size_t>(r)] = connect(server, std::to_string(r) + " 4 123 host-a");
  for (ControlSocket& rank : ranks) ASSERT_TRUE(rank.flush());
  ASSERT_EQ(heard(server, 4).size(), 4U);
  const std::vector<int> order = {2, 0, 3, 1};
  for (const int rank : order) ranks[static_cast<std::size_t>(rank)] = ControlSocket();
  std::vector<int> ended;
  for (const auto& message : heard(server, 4)) ended.push_back(message.rank);
  EXPECT_EQ(ended, order);
}

bool answers(const std::string& address, const std::string& port) {
  return ControlSocket::connect(address + ":" + port, 5000ms).open();
}

TEST(ControlServer, ListensWhereItIsToldAndNowhereElse) {
  const ControlServer server("token", 8, {{"127.0.0.2", "127.0.0.3"}, false, ""});
  std::istringstream places(server.addresses());
  std::string place;
  for (const std::string address : {"127.0.0.2", "127.0.0.3"}) {
    ASSERT_TRUE(std::getline(places, place, ','));
    EXPECT_TRUE(place.starts_with(address + ":")) << place;
    const std::string port = place.substr(place.find(':') + 1);
    EXPECT_TRUE(answers(address, port));
    EXPECT_FALSE(answers("127.0.0.1", port));
    EXPECT_FALSE(answers("127.0.0.4", port));
  }
  const ControlServer everywhere("token", 8, {{"127.0.0.2"}, true, ""});
  EXPECT_TRUE(answers("127.0.0.4", everywhere.addresses().substr(everywhere.addresses().find(':') + 1)));
}

// Whether the server closes the connection after its challenge, without a message about it.
bool is_closed(ControlServer& server, ControlSocket& connection) {
  std::vector<std::string> lines;
  bool open = true;
  for (int i = 0; i < 1000 && open; ++i) {
    EXPECT_TRUE(server.poll(5ms, -1).empty());
    open = connection.read_lines(lines);
  }
  return !open && lines.size() <= 1;
}

TEST(ControlServer, AConnectionWithAnotherTokenIsClosed) {
  ControlServer server("token", 8, listening_on_loopback());
  ControlSocket connection = connect(server, "0 1 1 x", "wrong");
  ASSERT_TRUE(connection.flush());
  EXPECT_TRUE(is_closed(server, connection));
  connection = ControlSocket::connect(server.addresses(), 5000ms);
  connection.queue("hello token 0 1 1 x");
  ASSERT_TRUE(connection.flush());
  EXPECT_TRUE(is_closed(server, connection)) << "the token itself is no proof of it";
}

TEST(ControlServer, AProofThatWasOverheardIsWorthNothing) {
  ControlServer server("token", 8, listening_on_loopback());
  ControlSocket rank = ControlSocket::connect(server.addresses(), 5000ms);
  const std::string challenge = line_from(server, rank);
  ControlSocket other = ControlSocket::connect(server.addresses(), 5000ms);
  EXPECT_NE(line_from(server, other), challenge);
  other.queue("hello " + hmac_sha256("token", challenge.substr(10)) + " 0 1 1 x");
  ASSERT_TRUE(other.flush());
  EXPECT_TRUE(is_closed(server, other));
}

// Each holds a descriptor and sends no hello. A rank that connects after them is heard, and the oldest are closed.
TEST(ControlServer, AThousandConnectionsWithoutAHelloKeepNoRankOut) {
  ControlServer server("token", 8, listening_on_loopback());
  std::vector<ControlSocket> idle;
  for (int i = 0; i < 1500; ++i) {
    idle.push_back(ControlSocket::connect(server.addresses(), 5000ms));
    ASSERT_TRUE(idle.back().open()) << i;
    if (i % 100 == 0) {
      EXPECT_TRUE(server.poll(0ms, -1).empty());
    }
  }
  ControlSocket rank = connect(server, "3 4 123 host-a");
  ASSERT_TRUE(rank.flush());
  const auto messages = heard(server, 1);
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].rank, 3);
  EXPECT_LE(server.unidentified(), 1024U);
}

TEST(ControlServer, AConnectionWhoseHelloDoesNotEndIsClosed) {
  ControlServer server("token", 8, listening_on_loopback());
  ControlSocket connection = ControlSocket::connect(server.addresses(), 5000ms);
  connection.queue("hello " + std::string(5000, 'x'));
  ASSERT_TRUE(connection.flush());
  EXPECT_TRUE(is_closed(server, connection));
}

// What directly follows a hello may be longer than any hello.
TEST(ControlServer, ALongLineBehindTheHelloIsHeard) {
  ControlServer server("token", 8, listening_on_loopback());
  ControlSocket rank = connect(server, "0 1 1 a");
  const std::string event(100'000, 'x');
  rank.queue("event " + event);
  (void)rank.flush();
  std::vector<RankMessage> messages;
  for (int i = 0; i < 1000 && messages.size() < 2; ++i) {
    for (auto& message : server.poll(5ms, -1)) messages.push_back(message);
    (void)rank.flush();
  }
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(messages[1].rest, event);
}

// The limit on open files is so low that not all connections can be accepted: those that are accepted are heard, and
// the loop does not spin on the others.
TEST(ControlServer, WithoutDescriptorsThoseWhoAreConnectedAreHeard) {
  ControlServer server("token", 8, listening_on_loopback());
  ControlSocket rank = connect(server, "0 1 1 a");
  ASSERT_TRUE(rank.flush());
  ASSERT_EQ(heard(server, 1).size(), 1U);
  std::vector<ControlSocket> others;
  for (int i = 0; i < 20; ++i) others.push_back(ControlSocket::connect(server.addresses(), 5000ms));
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  rlimit few = files;
  few.rlim_cur = static_cast<rlim_t>(others.back().descriptor()) + 5;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(server.poll(0ms, -1).empty());
  int wakes = 0;  // what is left in the queue would wake each of these at once
  const auto start = std::chrono::steady_clock::now();
  for (; wakes < 20; ++wakes) (void)server.poll(10ms, -1);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 150ms);
  rank.queue("beat 1 2 3");
  ASSERT_TRUE(rank.flush());
  const auto messages = heard(server, 1);
  setrlimit(RLIMIT_NOFILE, &files);
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].word, "beat");
}

TEST(ControlServer, MoreRanksThanFilesMayBeOpenAreRefused) {
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  const int ranks = static_cast<int>(std::min<rlim_t>(files.rlim_max, 1'000'000'000));
  try {
    ControlServer server("token", ranks, listening_on_loopback());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_EQ(std::string(error.what()),
              "launch: expected a limit of at least " + std::to_string(ranks + 64) + " open files, one for each of " +
                  std::to_string(ranks) + " ranks and some more, found " + std::to_string(files.rlim_max) +
                  "; raise it (ulimit -Hn, LimitNOFILE= of the service), or start fewer ranks");
  }
}

TEST(ControlSocket, WordsAndNumbersAreTakenFromTheFront) {
  std::string rest = "beat 12 x y";
  EXPECT_EQ(take_word(rest), "beat");
  EXPECT_EQ(take_number(rest), 12);
  EXPECT_EQ(rest, "x y");
  EXPECT_EQ(one_line("a\nb"), "a b");
  EXPECT_EQ(packed_lines("a\nb").find('\n'), std::string::npos);
  EXPECT_EQ(unpacked_lines(packed_lines("a\nb")), "a\nb");
  EXPECT_FALSE(ControlSocket::connect("nonsense", 10ms).open());
}

TEST(Listening, IsNoWiderThanTheHostsNeed) {
  EXPECT_EQ(listening_for({{"localhost", 2}, {own_host_name(), 1}}, "").addresses,
            std::vector<std::string>{"127.0.0.1"});
  const Listening one = listening_for({{"localhost", 2}, {"127.0.0.9", 1}}, "");  // another host, by its name
  EXPECT_EQ(one.addresses, std::vector<std::string>{"127.0.0.1"});
  EXPECT_FALSE(one.all_interfaces);
  const Listening chosen = listening_for({{"other", 1}}, "127.0.0.7");
  EXPECT_EQ(chosen.addresses, std::vector<std::string>{"127.0.0.7"});
  EXPECT_FALSE(chosen.all_interfaces);
}

TEST(Listening, IsEverywhereWithAWordWhereTheAddressIsUnknown) {
  const Listening unknown = listening_for({{"an-alias-of-ssh.invalid", 1}}, "");
  EXPECT_TRUE(unknown.all_interfaces);
  EXPECT_EQ(unknown.addresses.back(), "127.0.0.1");
  EXPECT_EQ(unknown.warning.find("the control socket listens on all interfaces of this host, since the address by "
                                 "which the other hosts reach it is not known: an-alias-of-ssh.invalid: "),
            0U)
      << unknown.warning;
  const Listening translated = listening_for({{"other", 1}}, "192.0.2.1");  // an address reserved for documentation
  EXPECT_TRUE(translated.all_interfaces);
  EXPECT_EQ(translated.addresses.front(), "192.0.2.1");
  EXPECT_EQ(translated.warning,
            "the control socket listens on all interfaces of this host, which has no address 192.0.2.1 (--listen): "
            "Cannot assign requested address; the ranks use it nevertheless");
  EXPECT_EQ(listening_for({{"other", 1}}, "0.0.0.0").warning, "") << "it was asked for";
  EXPECT_TRUE(listening_for({{"other", 1}}, "0.0.0.0").all_interfaces);
}

TEST(Listening, AMistakeIsTold) {
  try {
    (void)listening_for({}, "eth0");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_STREQ(error.what(),
                 "--listen: expected an IP address of this machine, or 0.0.0.0 or :: for all, found 'eth0'");
  }
}

}  // namespace
}  // namespace lockstep::launch
