// mpirun's command line, child processes, finding processes by their mark.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "core/files.hpp"
#include "launch/child.hpp"
#include "launch/mpirun.hpp"
#include "launch/processes.hpp"
#include "launch/secrets.hpp"
#include "lockstep/error.hpp"

namespace lockstep::launch {
namespace {

using namespace std::chrono_literals;

bool holds(const std::vector<std::string>& words, const std::vector<std::string>& run) {
  return std::search(words.begin(), words.end(), run.begin(), run.end()) != words.end();
}

TEST(Mpirun, EachMajorGetsItsOwnFlags) {
  const MpirunOptions options = {.ranks = 3,
                                 .hosts = {{"a", 2}, {"b", 1}},
                                 .agent = "my-agent",
                                 .environment = {{"NAME", "value"}},
                                 .mark = "mark"};
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

TEST(Mpirun, InAJobOfSlurmItTakesTheHostsThatItIsTold) {
  const MpirunOptions here, job{.ranks = 2, .hosts = {{"a", 2}}, .agent = "", .by_slurm = true};
  EXPECT_FALSE(mpirun_environment(here).contains("OMPI_MCA_ras"));
  setenv("SLURM_JOB_ID", "7", 1);
  EXPECT_EQ(mpirun_environment(here).at("OMPI_MCA_ras"), "^slurm");
  EXPECT_EQ(mpirun_environment(here).at("PRTE_MCA_plm"), "^slurm");
  EXPECT_FALSE(mpirun_environment(job).contains("OMPI_MCA_ras"));
  EXPECT_EQ(mpirun_environment(job).at("SLURM_OVERLAP"), "1");
  unsetenv("SLURM_JOB_ID");
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
  const std::array<const char*, 7> environment = {
      "PATH=/bin", "NCCL_SOCKET_IFNAME==eth0", "FI_PROVIDER=efa", "XNCCL_DEBUG=INFO", "NCCL_IB_HCA=", "AWS_REGION=here",
      nullptr};
  const std::map<std::string, std::string> expected = {
      {"NCCL_SOCKET_IFNAME", "=eth0"}, {"FI_PROVIDER", "efa"}, {"NCCL_IB_HCA", ""}};
  EXPECT_EQ(passed_on_variables(environment.data()), expected);
  EXPECT_EQ(secret_variables(environment.data()), (Variables{{"AWS_REGION", "here"}}));
  const MpirunOptions options{.hosts = {{"a", 1}, {"b", 1}}, .environment = {{"OPEN", "1"}}, .secrets = {{"KEY", "2"}}};
  const auto command = mpirun_command(options, 4);
  EXPECT_TRUE(holds(command, {"-x", "OPEN"}));
  EXPECT_FALSE(holds(command, {"-x", "KEY"})) << "it would be sent in clear";
  EXPECT_EQ(mpirun_environment(options)["KEY"], "2");
}

TEST(Secrets, AreTakenFromMemoryThatOnlyTheirUserCanRead) {
  const std::string mark = "secrets-test-" + std::to_string(getpid()), file = "/dev/shm/" + mark + ".secrets";
  const std::string text = to_text({{"SECRETS_TEST_A", "a=b\nc"}, {"SECRETS_TEST_B", ""}});
  for (const std::string& cut : {std::string(), text.substr(0, 10)}) {
    try {
      keep_secrets(mark, cut);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::infrastructure);
      EXPECT_EQ(error.what(), "launch --keep: expected the launch's secrets on stdin, found " +
                                  std::to_string(cut.size()) + " bytes; the agent must pass its stdin on");
    }
  }
  EXPECT_EQ(access(file.c_str(), F_OK), -1);
  keep_secrets(mark, text);
  struct stat status {};
  ASSERT_EQ(stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  setenv(kMarkVariable, mark.c_str(), 1);
  take_secrets();
  EXPECT_STREQ(getenv("SECRETS_TEST_A"), "a=b\nc");
  EXPECT_STREQ(getenv("SECRETS_TEST_B"), "");
  drop_secrets(mark);
  EXPECT_EQ(access(file.c_str(), F_OK), -1);
  take_secrets();  // nothing is kept, as on the launch's own host
  unsetenv(kMarkVariable);
  EXPECT_THROW(keep_secrets("../" + mark, text), Error);
}

TEST(Child, ReadsItsInput) {
  Child child({"sh", "-c", "[ \"$(cat)\" = 'two words' ]"}, {.input = "two words"});
  EXPECT_EQ(child.wait(20s), 0);
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

// Like a killed rank one of whose threads is in fsync().
TEST(Processes, AZombieWithALivingThreadIsNotGone) {
  const std::string mark = "processes_test-zombie-" + std::to_string(getpid());
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
  const std::string mark = "processes_test-" + std::to_string(getpid());
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

}  // namespace
}  // namespace lockstep::launch
