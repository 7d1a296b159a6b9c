// The parts of a pod: its role, what ssh and sshd read, for whom it waits, the last message.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "core/files.hpp"
#include "launch/child.hpp"
#include "launch/pod/last_message.hpp"
#include "launch/pod/pod.hpp"
#include "launch/pod/pod_names.hpp"
#include "launch/pod/preflight.hpp"
#include "launch/pod/ssh_files.hpp"
#include "launch/pod/unfit_node.hpp"
#include "launch/pod/worker.hpp"
#include "launch/processes.hpp"
#include "lockstep/error.hpp"

namespace lockstep::launch {
namespace {

using namespace std::chrono_literals;

std::string message_of(ExitCode code, const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  return "nothing was thrown";
}

const Hosts kHosts = {{"run-0.run", 2}, {"run-1.run", 2}};

TEST(PodRole, TheFirstLineLeadsAndTheOthersWork) {
  EXPECT_EQ(role_of(kHosts, "run-0", "hosts"), PodRole::leader);
  EXPECT_EQ(role_of(kHosts, "run-0.run.default.svc", "hosts"), PodRole::leader);
  EXPECT_EQ(role_of(kHosts, "run-1", "hosts"), PodRole::worker);
}

TEST(PodRole, AHostThatIsNotListedIsAMistake) {
  EXPECT_EQ(
      message_of(ExitCode::configuration, [] { (void)role_of(kHosts, "run-10", "/etc/lockstep/hosts"); }),
      "/etc/lockstep/hosts: expected a line for this host, 'run-10', found run-0.run:2,run-1.run:2; the list must "
      "name every pod of the job, the leader first");
}

TEST(UnfitNode, VariablesAreFilledInAsJson) {
  EXPECT_EQ(filled_in(R"j({"a": "$(A)", "b": "$(B)-$(A)", "c": "$(C)"})j", {{"A", "say \"$(A)\""}, {"B", "x\ny"}}),
            R"j({"a": "say \"$(A)\"", "b": "x\ny-say \"$(A)\"", "c": "$(C)"})j");
}

TEST(SshFiles, ShortNamesAreKnownAndOnlyTheJobsKeyCounts) {
  const SshSettings settings{"/run/lockstep", "lockstep", 2222};
  EXPECT_EQ(ssh_config(settings, {{"run-0.run", 1}, {"plain", 1}}),
            "Host run-0\n  HostName run-0.run\nHost *\n  Port 2222\n  User lockstep\n"
            "  IdentityFile /run/lockstep/key\n  IdentitiesOnly yes\n  IdentityAgent none\n"
            "  StrictHostKeyChecking yes\n  UserKnownHostsFile /run/lockstep/known_hosts\n"
            "  GlobalKnownHostsFile /dev/null\n  BatchMode yes\n  ConnectTimeout 5\n  LogLevel ERROR\n");
  EXPECT_EQ(ssh_agent_command(settings), "ssh -F /run/lockstep/ssh_config");
}

TEST(SshFiles, SessionsGetThePodsEnvironmentInOneLine) {
  const std::string text = sshd_config(
      {"/run/lockstep", "lockstep", 2222},
      {{"HOSTNAME", "run-0"}, {"NCCL_DEBUG", "INFO"}, {"QUOTED", "a\"b"}, {"SSH_CLIENT", "1"}, {"WORDS", "a b"}});
  EXPECT_NE(text.find("\nSetEnv \"NCCL_DEBUG=INFO\" \"WORDS=a b\"\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nAllowUsers lockstep\nAuthenticationMethods publickey\n"), std::string::npos) << text;
}

class SshFilesOnDisk : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_ = testing::TempDir() + "pod_test-" + std::to_string(getpid());
};

TEST_F(SshFilesOnDisk, OneKeyIsUsersAndHosts) {
  const std::string key = folder_ + "/given";
  if (run_command({"ssh-keygen", "-q", "-t", "ecdsa", "-m", "PEM", "-N", "", "-f", key}, 30s).code != 0) {
    GTEST_SKIP() << "no ssh-keygen";
  }
  ASSERT_EQ(chmod(key.c_str(), 0600), 0);
  const SshSettings settings{folder_ + "/state", "me", 2222};
  write_ssh_files(settings, key, kHosts, {});
  const std::string own = read_whole_file(settings.folder + "/authorized_keys").value_or("");
  EXPECT_EQ(own.rfind("ecdsa-sha2-nistp256 ", 0), 0U) << own;
  EXPECT_EQ(read_whole_file(settings.folder + "/known_hosts"), "* " + own);
  struct stat found {};
  ASSERT_EQ(stat((settings.folder + "/key").c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600U) << "ssh refuses a key that others can read";
}

TEST_F(SshFilesOnDisk, WhatIsNoKeyIsTold) {
  const SshSettings settings{folder_ + "/state", "me", 2222};
  EXPECT_EQ(message_of(ExitCode::configuration, [&] { write_ssh_files(settings, folder_ + "/none", kHosts, {}); }),
            "--key: cannot read '" + folder_ + "/none'; give the private key that all pods of the job share");
  std::ofstream(folder_ + "/text") << "no key\n";
  const auto message =
      message_of(ExitCode::configuration, [&] { write_ssh_files(settings, folder_ + "/text", kHosts, {}); });
  EXPECT_EQ(message.rfind("--key: expected a private key without a password in " + folder_ +
                              "/text; ssh-keygen ended "
                              "with 255: ",
                          0),
            0U)
      << message;
}

// An agent `AGENT HOST COMMAND` that fails for hosts whose name begins with "absent".
class Preflight : public SshFilesOnDisk {
 protected:
  HostPool pool(const Hosts& hosts) {
    const std::string agent = folder_ + "/agent";
    std::ofstream(agent) << "#!/bin/sh\ncase $1 in absent*) echo 'the door is shut' >&2; exit 255;; esac\n";
    chmod(agent.c_str(), 0755);
    return HostPool({[hosts] { return hosts; }, agent, "lockstep", 5, 0.1});
  }
  static bool all_run(const std::string&) { return true; }
  static bool go_on() {
    std::this_thread::sleep_for(5ms);
    return false;
  }
};

TEST_F(Preflight, GoesOnWhenAllAnswer) {
  HostPool hosts = pool({{"a", 1}, {"b", 1}});
  EXPECT_TRUE(preflight(hosts, {0, 60, 60}, all_run, go_on));
  EXPECT_EQ(hosts.usable().size(), 2U);
}

TEST_F(Preflight, GoesOnWithEnoughOnceTheOthersHadTheirTime) {
  HostPool hosts = pool({{"a", 1}, {"absent-1", 1}, {"absent-2", 1}});
  EXPECT_TRUE(preflight(hosts, {1, 60, 0.2}, all_run, go_on));
  EXPECT_EQ(to_text(hosts.usable()), "a:1");
}

TEST_F(Preflight, AJobThatHasBegunGoesOnWithoutThoseThatDoNotCome) {
  HostPool hosts = pool({{"a", 1}, {"absent-1", 1}});
  EXPECT_TRUE(preflight(hosts, {0, 0.2, 60, false}, all_run, go_on));
  EXPECT_EQ(to_text(hosts.usable()), "a:1");
}

TEST_F(Preflight, NamesWhoIsMissing) {
  HostPool hosts = pool({{"a", 1}, {"absent-1", 1}, {"absent-2", 1}});
  EXPECT_EQ(message_of(ExitCode::infrastructure,
                       [&] {
                         (void)preflight(hosts, {2, 0.3, 60}, all_run, go_on);
                       }),
            "preflight: expected 2 of 3 hosts within 0 s, found 1; missing: absent-1 (the door is shut), absent-2 (the "
            "door is shut). Do these pods run (kubectl get pods, kubectl describe pod), and may pods of this job reach "
            "each other?");
}

TEST_F(Preflight, APodWithoutANodeHasAllTheTimeItNeeds) {
  HostPool hosts = pool({{"a", 1}, {"absent-1", 1}, {"absent-2", 1}});
  const auto start = Clock::now();
  const auto runs = [&](const std::string& host) { return host == "absent-1" && seconds_since(start) > 1; };
  EXPECT_EQ(message_of(ExitCode::infrastructure,
                       [&] {
                         (void)preflight(hosts, {0, 0.3, 60}, runs, go_on);
                       }),
            "preflight: expected 3 of 3 hosts within 0 s, found 1; missing: absent-1 (the door is shut). Do these pods "
            "run (kubectl get pods, kubectl describe pod), and may pods of this job reach each other?");
  EXPECT_GE(seconds_since(start), 1.3) << "it was silent for 0.3 s since it ran";
  const auto none = [](const std::string&) { return false; };
  const std::string message = message_of(ExitCode::infrastructure, [&] {
    (void)preflight(hosts, {.hosts = 0, .seconds = 60, .pending_seconds = 0.2}, none, go_on);
  });
  EXPECT_NE(message.find("found 1; missing: absent-1 (the door is shut), absent-2"), std::string::npos) << message;
}

// Processes that are there at the same time, as an agent notes them that takes 0.1 s.
TEST_F(Preflight, ThousandPodsAreAskedSixtyFourAtATime) {
  const std::string agent = folder_ + "/slow", log = folder_ + "/log";
  std::ofstream(agent) << "#!/bin/sh\necho + >> " << log << "\nsleep 0.1\necho - >> " << log << "\n";
  chmod(agent.c_str(), 0755);
  Hosts names;
  for (int i = 0; i < 1000; ++i) names.push_back({"pod-" + std::to_string(i), 1});
  HostPool hosts({[names] { return names; }, agent, "lockstep", 600, 0.1});
  EXPECT_TRUE(preflight(hosts, {0, 60, 60}, all_run, go_on));
  int asked = 0, now = 0, most = 0;
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    asked += line == "+" ? 1 : 0;
    now += line == "+" ? 1 : -1;
    most = std::max(most, now);
  }
  EXPECT_EQ(asked, 1000);
  EXPECT_LE(most, 64);
  EXPECT_EQ(hosts.run_everywhere(names, "pod --end 0", 60s).size(), 0U);
}

TEST_F(Preflight, PodsWithoutANodeAreNotAsked) {
  const std::string agent = folder_ + "/counting", log = folder_ + "/log";
  std::ofstream(agent) << "#!/bin/sh\necho $1 >> " << log << "\n";
  chmod(agent.c_str(), 0755);
  const Hosts names = {{"a", 1}, {"absent", 1}};
  const auto runs = [](const std::string& host) { return host == "a"; };
  HostPool hosts({.list = [names] { return names; }, .agent = agent, .program = "lockstep", .exists = runs});
  EXPECT_TRUE(preflight(hosts, {1, 60, 0.5}, runs, go_on));
  EXPECT_EQ(read_whole_file(log), "a\n");
}

TEST(PodNames, KnowsThoseThatCanBeResolved) {
  PodNames names;
  const auto start = Clock::now();
  while (!names.runs("localhost") && seconds_since(start) < 30) std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(names.runs("localhost"));
  EXPECT_FALSE(names.runs("no-such-pod.invalid"));
}

TEST_F(Preflight, ASignalEndsIt) {
  HostPool hosts = pool({{"absent", 1}});
  EXPECT_FALSE(preflight(hosts, {0, 60, 60}, all_run, [] { return true; }));
}

TEST(Absence, IsCountedFromTheLastTimeTheLeaderWasSeen) {
  Absence absence(100, 1000);
  EXPECT_EQ(absence.seconds(1100), 100);
  absence.seen(1090);
  EXPECT_EQ(absence.seconds(1190), 100);
  EXPECT_EQ(absence.look_every(), 25);
  EXPECT_EQ(Absence(3600, 0).look_every(), 60);
}

TEST(LeaderWatch, WithoutALimitNobodyIsAsked) {
  LeaderWatch watch({"false"}, 0);
  EXPECT_EQ(watch.absent_seconds(), 0);
}

TEST(LastMessage, IsTheLastThatBeginsALine) {
  EXPECT_EQ(last_message("step 1\nlockstep: first\nlockstep: a.yaml:3: expected b\n  or lockstep: c\n\n"),
            "lockstep: a.yaml:3: expected b\n  or lockstep: c");
  EXPECT_EQ(last_message("lockstep: alone"), "lockstep: alone");
  EXPECT_EQ(last_message("step 1 lockstep: not at the start\n"), "");
}

TEST(LastMessage, AChildsErrorsArePassedOnAndKept) {
  MessagePipe pipe;
  testing::internal::CaptureStderr();
  Child child({"sh", "-c", "echo out; echo step 1 >&2; echo 'lockstep: no such file' >&2"},
              {.output = "/dev/null", .environment = {}, .errors = pipe.writer()});
  pipe.started();
  while (!child.poll()) pipe.pass_on(10ms, -1);
  pipe.pass_on(0ms, -1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "step 1\nlockstep: no such file\n");
  EXPECT_EQ(pipe.last(), "lockstep: no such file");
}

TEST(LastMessage, IsCutToWhatKubernetesKeeps) {
  const std::string path = testing::TempDir() + "pod_test-termination-" + std::to_string(getpid());
  write_termination_message(path, std::string(5000, 'x'));
  EXPECT_EQ(read_whole_file(path).value_or("").size(), 4096U);
  std::filesystem::remove(path);
  testing::internal::CaptureStderr();
  write_termination_message("/nowhere/at/all", "text");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "warning: --termination-log: cannot write /nowhere/at/all: No such file or directory\n");
}

TEST(Processes, RanksOfAnyLaunchAreFound) {
  const Child rank({"sleep", "1000"}, {"", {{kMarkVariable, "pod_test"}, {"OMPI_COMM_WORLD_RANK", "0"}}});
  const Child daemon({"sh", "-c", "kill -STOP $$", kMarkSetting, "pod_test"}, {});
  const auto holds = [](const std::vector<pid_t>& found, const Child& child) {
    return std::find(found.begin(), found.end(), child.pid()) != found.end();
  };
  const auto both = [&] {
    const auto found = launch_processes_here();
    return holds(found, rank) && holds(found, daemon);
  };
  for (int i = 0; i < 2000 && !both(); ++i) std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(both());
  EXPECT_TRUE(holds(ranks_here(), rank));
  EXPECT_FALSE(holds(ranks_here(), daemon));
}

}  // namespace
}  // namespace lockstep::launch
