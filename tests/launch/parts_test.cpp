// mpirun's command line, children, processes by their mark, control sockets, the events of a launch.
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <thread>

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
  const std::vector<std::string> without = {"--mca", "btl", "^tcp"};
  for (const int major : {4, 5}) {
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
  ControlServer server("token", true);
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
  ControlServer server("token", true);
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

TEST(ControlServer, AStrangerIsShownOut) {
  ControlServer server("token", true);
  ControlSocket stranger = ControlSocket::connect(server.addresses(), 5000ms);
  stranger.queue("hello wrong 0 1 1 x");
  ASSERT_TRUE(stranger.flush());
  std::vector<std::string> lines;
  bool open = true;
  for (int i = 0; i < 1000 && open; ++i) {
    EXPECT_TRUE(server.poll(5ms, -1).empty());
    open = stranger.read_lines(lines);
  }
  EXPECT_FALSE(open);
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
  Job job;
  job.run_directory = testing::TempDir() + "run_record_lock-" + std::to_string(getpid());
  auto first = std::make_unique<RunRecord>(job, false);
  EXPECT_THROW(RunRecord(job, false), Error);
  std::thread end([&] {
    std::this_thread::sleep_for(50ms);
    first.reset();
  });
  EXPECT_NO_THROW(RunRecord(job, false, 60));
  end.join();
  std::filesystem::remove_all(job.run_directory);
}

// A limit of the process stands for a full disk: a write across it is cut short, too.
TEST(RunRecord, AFullDiskLeavesAGapAndNoHalfALine) {
  Job job;
  job.run_directory = testing::TempDir() + "run_record-" + std::to_string(getpid());
  const std::string file = job.run_directory + "/events.jsonl";
  RunRecord record(job, false);
  record.line(R"({"event":"first"})");
  const auto size = std::filesystem::file_size(file);
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &usual), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit full{size + 10, usual.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  record.line(R"({"event":"second"})");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &usual), 0);
  (void)std::signal(SIGXFSZ, handler);
  EXPECT_EQ(std::filesystem::file_size(file), size);
  record.line(R"({"event":"third"})");
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  EXPECT_EQ(text.str().find(R"({"event":"first","time":)"), 0U);
  EXPECT_NE(text.str().find("}\n{\"event\":\"third\""), std::string::npos) << text.str();
  EXPECT_EQ(text.str().find("second"), std::string::npos);
  std::filesystem::remove_all(job.run_directory);
}

}  // namespace
}  // namespace lockstep::launch
