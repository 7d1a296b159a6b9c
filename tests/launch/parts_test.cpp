// mpirun's command line, children, processes by their mark, control sockets, the events of a launch.
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <sstream>
#include <thread>

#include "core/whole_file.hpp"
#include "launch/child.hpp"
#include "launch/control_server.hpp"
#include "launch/mpirun.hpp"
#include "launch/processes.hpp"
#include "launch/run_record.hpp"
#include "lockstep/error.hpp"

namespace lockstep::launch {
namespace {

using namespace std::chrono_literals;

bool holds(const std::vector<std::string>& words, const std::vector<std::string>& run) {
  return std::search(words.begin(), words.end(), run.begin(), run.end()) != words.end();
}

TEST(Mpirun, EachMajorGetsItsOwnFlags) {
  const MpirunOptions options = {3, {{"a", 2}, {"b", 1}}, "my-agent", {{"NAME", "value"}}, "mark"};
  const auto four = mpirun_command(options, 4), five = mpirun_command(options, 5);
  EXPECT_TRUE(holds(four, {"--oversubscribe"}));
  EXPECT_FALSE(holds(five, {"--oversubscribe"}));
  EXPECT_FALSE(holds(five, {"--quiet"})) << "version 5 refuses it";
  EXPECT_TRUE(holds(five, {"--map-by", ":OVERSUBSCRIBE"}));
  for (const auto& command : {four, five}) {
    EXPECT_TRUE(holds(command, {"mpirun", "-n", "3"}));
    EXPECT_TRUE(holds(command, {"--host", "a:2,b:1"}));
    EXPECT_TRUE(holds(command, {"-x", "NAME"}));
    EXPECT_TRUE(holds(command, {"--mca", "lockstep_launch", "mark"}));
  }
  const auto environment = mpirun_environment(options);
  EXPECT_EQ(environment.at("OMPI_MCA_plm_rsh_agent"), "my-agent");
  EXPECT_EQ(environment.at("PRTE_MCA_plm_ssh_agent"), "my-agent");
  EXPECT_EQ(environment.at("NAME"), "value");
}

TEST(Mpirun, RanksOfOneHostNeedNoSockets) {
  for (const int major : {4, 5}) {
    const std::vector<std::string> without = {"--mca", "pml", "ob1",
                                              "--mca", "btl", major == 5 ? "self,sm" : "self,vader"};
    EXPECT_TRUE(
        holds(mpirun_command({.ranks = 2, .hosts = {}, .agent = "", .environment = {}, .mark = ""}, major), without));
    EXPECT_TRUE(holds(
        mpirun_command({.ranks = 2, .hosts = {{"a", 2}}, .agent = "", .environment = {}, .mark = ""}, major), without));
    EXPECT_FALSE(holds(
        mpirun_command({.ranks = 2, .hosts = {{"a", 1}, {"b", 1}}, .agent = "", .environment = {}, .mark = ""}, major),
        without));
  }
}

TEST(Mpirun, WhatNetworksAreToldGoesToTheRanksOfAllHosts) {
  const std::array<const char*, 6> environment = {
      "PATH=/bin", "NCCL_SOCKET_IFNAME==eth0", "FI_PROVIDER=efa", "XNCCL_DEBUG=INFO", "NCCL_IB_HCA=", nullptr};
  const std::map<std::string, std::string> expected = {
      {"NCCL_SOCKET_IFNAME", "=eth0"}, {"FI_PROVIDER", "efa"}, {"NCCL_IB_HCA", ""}};
  EXPECT_EQ(network_variables(environment.data()), expected);
}

TEST(Child, TellsExitCodeAndSignal) {
  Child seven({"sh", "-c", "exit 7"}, {});
  EXPECT_EQ(seven.wait(20s), 7);
  EXPECT_FALSE(seven.killed());
  Child sleeper({"sleep", "1000"}, {});
  EXPECT_FALSE(sleeper.poll());
  sleeper.signal(SIGKILL);
  EXPECT_EQ(sleeper.wait(20s), 128 + SIGKILL);
  EXPECT_TRUE(sleeper.killed());
}

TEST(Child, ACommandThatTakesTooLongIsKilled) {
  const auto output = run_command({"sh", "-c", "echo first; exec sleep 1000"}, 1000ms);
  EXPECT_EQ(output.code, 124);
  EXPECT_EQ(output.output, "first\n");
}

// As a killed rank is while one of its threads is in fsync().
TEST(Processes, AZombieWithALivingThreadIsNotGone) {
  const std::string mark = "parts_test-zombie-" + std::to_string(getpid());
  const std::string ends_its_first_thread =
      "import ctypes, threading, time\n"
      "threading.Thread(target=time.sleep, args=(1000,)).start()\n"
      "ctypes.CDLL(None).syscall(" +
      std::to_string(SYS_exit) + ", 0)";
  Child zombie({"python3", "-c", ends_its_first_thread}, {"", {{kMarkVariable, mark}}});
  const std::string folder = "/proc/" + std::to_string(zombie.pid());
  const auto is_zombie = [&] {
    return read_whole_file(folder + "/stat").value_or("").find(") Z ") != std::string::npos;
  };
  for (int i = 0; i < 6000 && !is_zombie(); ++i) std::this_thread::sleep_for(5ms);
  ASSERT_TRUE(is_zombie());
  EXPECT_EQ(marked_processes(mark), std::vector<pid_t>{zombie.pid()});
  EXPECT_EQ(kill_marked(mark, 0, 20s), 1);
  EXPECT_EQ(zombie.wait(20s), 128 + SIGKILL);
}

TEST(Processes, AreFoundByEnvironmentOrCommandLineAndKilled) {
  const std::string mark = "parts_test-" + std::to_string(getpid());
  Child by_environment({"sleep", "1000"}, {"", {{kMarkVariable, mark}}});
  Child by_word({"sh", "-c", "kill -STOP $$", mark}, {});
  Child neither({"sleep", "1000"}, {});
  Child ender({"sh", "-c", "kill -STOP $$", "--end", mark}, {});
  const auto both = [&] { return marked_processes(mark).size() >= 2; };
  for (int i = 0; i < 2000 && !both(); ++i) std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(both());
  EXPECT_EQ(kill_marked(mark, by_word.pid(), 5ms), 1);
  EXPECT_EQ(by_environment.wait(20s), 128 + SIGKILL);
  EXPECT_EQ(kill_marked(mark, 0, 20s), 1);
  EXPECT_TRUE(marked_processes(mark).empty());
  EXPECT_FALSE(neither.poll());
  EXPECT_FALSE(ender.poll());
}

std::vector<RankMessage> heard(ControlServer& server, std::size_t count) {
  std::vector<RankMessage> all;
  for (int i = 0; i < 1000 && all.size() < count; ++i) {
    for (auto& message : server.poll(20ms, -1)) all.push_back(message);
  }
  return all;
}

TEST(ControlServer, HearsWhoKnowsTheTokenAndSeesItsEnd) {
  ControlServer server("token", 8, listening_on_loopback());
  ControlSocket rank = ControlSocket::connect(server.addresses(), 5000ms);
  ASSERT_TRUE(rank.open());
  rank.queue("hello token 3 4 123 host-a");
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

// A rank that dies takes others with it within milliseconds: the first is the one to name.
TEST(ControlServer, EndsAreHeardInTheirOrder) {
  ControlServer server("token", 8, listening_on_loopback());
  std::vector<ControlSocket> ranks(4);
  for (int r = 0; r < 4; ++r) {
    ranks[static_cast<std::size_t>(r)] = ControlSocket::connect(server.addresses(), 5000ms);
    ranks[static_cast<std::size_t>(r)].queue("hello token " + std::to_string(r) + " 4 123 host-a");
    ASSERT_TRUE(ranks[static_cast<std::size_t>(r)].flush());
  }
  ASSERT_EQ(heard(server, 4).size(), 4U);
  const std::vector<int> order = {2, 0, 3, 1};
  for (const int rank : order) ranks[static_cast<std::size_t>(rank)] = ControlSocket();
  std::vector<int> ended;
  for (const auto& message : heard(server, 4)) ended.push_back(message.rank);
  EXPECT_EQ(ended, order);
}

// Without an answer or a message of it.
bool is_closed(ControlServer& server, ControlSocket& connection) {
  std::vector<std::string> lines;
  bool open = true;
  for (int i = 0; i < 1000 && open; ++i) {
    EXPECT_TRUE(server.poll(5ms, -1).empty());
    open = connection.read_lines(lines);
  }
  return !open && lines.empty();
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
  const Listening translated = listening_for({{"other", 1}}, "192.0.2.1");  // of documentation: nobody's
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
    EXPECT_STREQ(error.what(), "--listen: expected an IPv4 address of this machine, or 0.0.0.0 for all, found 'eth0'");
  }
}

TEST(ControlServer, AConnectionWithAnotherTokenIsClosed) {
  ControlServer server("token", 8, listening_on_loopback());
  ControlSocket connection = ControlSocket::connect(server.addresses(), 5000ms);
  connection.queue("hello wrong 0 1 1 x");
  ASSERT_TRUE(connection.flush());
  EXPECT_TRUE(is_closed(server, connection));
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
  ControlSocket rank = ControlSocket::connect(server.addresses(), 5000ms);
  rank.queue("hello token 3 4 123 host-a");
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

// What comes right behind a hello may be longer than any hello.
TEST(ControlServer, ALongLineBehindTheHelloIsHeard) {
  ControlServer server("token", 8, listening_on_loopback());
  ControlSocket rank = ControlSocket::connect(server.addresses(), 5000ms);
  const std::string event(100'000, 'x');
  rank.queue("hello token 0 1 1 a");
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

// The limit of open files is lowered so far that not all who connect can be taken: those who are, are heard, and the
// loop does not spin on the others.
TEST(ControlServer, WithoutDescriptorsThoseWhoAreConnectedAreHeard) {
  ControlServer server("token", 8, listening_on_loopback());
  ControlSocket rank = ControlSocket::connect(server.addresses(), 5000ms);
  rank.queue("hello token 0 1 1 a");
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
  EXPECT_FALSE(ControlSocket::connect("nonsense", 10ms).open());
}

TEST(RunRecord, ASecondLaunchWaitsForTheFirstOne) {
  const std::string directory = testing::TempDir() + "run_record_lock-" + std::to_string(getpid());
  auto first = std::make_unique<RunRecord>(directory, "", false);
  EXPECT_THROW(RunRecord(directory, "", false), Error);
  std::thread end([&] {
    std::this_thread::sleep_for(50ms);
    first.reset();
  });
  EXPECT_NO_THROW(RunRecord(directory, "", false, 60));
  end.join();
  std::filesystem::remove_all(directory);
}

// A limit of the process stands for a full disk: a write across it is cut short, too.
// A file system that stands still: here a pipe that nobody reads. Lines are taken meanwhile, and none is lost.
TEST(RunRecord, AFileThatTakesNothingForAWhileHoldsNobodyUp) {
  const std::string directory = testing::TempDir() + "run_record_pipe-" + std::to_string(getpid());
  std::filesystem::create_directories(directory);
  const std::string file = directory + "/events.jsonl";
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  const int reader = open(file.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  constexpr int kLines = 5000;  // more than a pipe holds
  std::string text;
  {
    RunRecord record(directory, "", true);
    testing::internal::CaptureStdout();
    auto written = std::async(std::launch::async, [&] {
      for (int i = 0; i < kLines; ++i) record.line(R"({"event":"step","step":)" + std::to_string(i) + "}");
    });
    const bool taken = written.wait_for(60s) == std::future_status::ready;
    EXPECT_TRUE(taken) << "the supervisor would hear no heartbeat";
    std::thread end([&] {
      std::array<char, 65536> block{};
      while (std::count(text.begin(), text.end(), '\n') < kLines) {
        const ssize_t count = read(reader, block.data(), block.size());
        if (count > 0) text.append(block.data(), static_cast<std::size_t>(count));
        if (count <= 0) std::this_thread::sleep_for(1ms);
      }
    });
    written.wait();
    end.join();
    record.flush();
    testing::internal::GetCapturedStdout();
  }
  close(reader);
  std::istringstream lines(text);
  std::string line;
  for (int i = 0; i < kLines; ++i) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(line.find(R"({"event":"step","step":)" + std::to_string(i) + ","), 0U) << line;
  }
  std::filesystem::remove_all(directory);
}

TEST(RunRecord, AFullDiskLeavesAGapAndNoHalfALine) {
  const std::string directory = testing::TempDir() + "run_record-" + std::to_string(getpid());
  const std::string file = directory + "/events.jsonl";
  RunRecord record(directory, "", false);
  record.line(R"({"event":"first"})");
  record.flush();
  const auto size = std::filesystem::file_size(file);
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &usual), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit full{size + 10, usual.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  record.line(R"({"event":"second"})");
  record.flush();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &usual), 0);
  (void)std::signal(SIGXFSZ, handler);
  EXPECT_EQ(std::filesystem::file_size(file), size);
  record.line(R"({"event":"third"})");
  record.flush();
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_EQ(text.str().find(R"({"event":"first","time":)"), 0U);
  EXPECT_NE(text.str().find("}\n{\"event\":\"third\""), std::string::npos) << text.str();
  EXPECT_EQ(text.str().find("second"), std::string::npos);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace lockstep::launch
