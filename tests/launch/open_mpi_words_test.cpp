// What Open MPI 4.1.4 prints when a rank dies, between the lines of ranks.
#include "launch/open_mpi_words.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace lockstep::launch {
namespace {

const std::string kRule(74, '-');
const std::string kKilled =
    kRule + "\nmpirun noticed that process rank 1 with PID 0 on node vm exited on signal 9 (Killed).\n" + kRule + "\n";
const std::string kCode = kRule +
                          "\nPrimary job  terminated normally, but 1 process returned\na non-zero exit code. Per "
                          "user-direction, the job has been aborted.\n" +
                          kRule + "\n" + kRule +
                          "\nmpirun detected that one or more processes exited with non-zero status, thus causing\nthe "
                          "job to be terminated. The first process to do so was:\n\n  Process name: [[1,1],0]\n  Exit "
                          "code:    75\n" +
                          kRule + "\n";
const std::string kMemory =
    kRule +
    "\nIt appears as if there is not enough space for /dev/shm/vader_segment (the shared-memory "
    "backing\nfile).\n\n  Space Requested: 4194312 B\n" +
    kRule + "\n";

/// What is passed on.
std::string passed(OpenMpiWords& words, const std::string& text) {
  std::istringstream lines(text);
  std::string rest;
  for (std::string line; std::getline(lines, line);) {
    if (words.take(line)) rest += line + "\n";
  }
  return rest;
}

TEST(OpenMpiWords, RanksLinesArePassedOn) {
  OpenMpiWords words;
  EXPECT_EQ(
      passed(words,
             "step 1\n" + kCode +
                 "[vm:123] 1 more process has sent help message\nmpirun: Forwarding signal 10 to job\nstep 2\n---\n"),
      "step 1\nstep 2\n---\n");
  EXPECT_EQ(words.first_block(), "") << "a code that a rank ended with on purpose explains nothing";
  EXPECT_FALSE(words.rank_has_spoken());
}

TEST(OpenMpiWords, ARanksErrorIsPassedOnEvenInABlock) {
  OpenMpiWords words;
  EXPECT_EQ(passed(words, kRule + "\nIt looks like\nlockstep: why\nMPI_INIT failed\n" + kRule + "\n"),
            "lockstep: why\n");
  EXPECT_TRUE(words.rank_has_spoken());
}

TEST(OpenMpiWords, ADeathIsNamed) {
  OpenMpiWords words;
  EXPECT_EQ(passed(words, kKilled), "");
  EXPECT_EQ(words.death(-1), "rank 1 was killed by signal 9 (Killed)");
  EXPECT_EQ(words.death(1), "killed by signal 9 (Killed)");
  EXPECT_EQ(words.death(0), "");
  ASSERT_TRUE(words.first_death());
  EXPECT_EQ(words.first_death()->rank, 1);
  EXPECT_EQ(words.first_death()->cause, "killed by signal 9 (Killed)");
}

TEST(OpenMpiWords, AFirstRankThatEndedWithACodeIsNamed) {
  OpenMpiWords words;
  EXPECT_FALSE(words.first_death());
  EXPECT_EQ(passed(words, kCode), "");
  ASSERT_TRUE(words.first_death());
  EXPECT_EQ(words.first_death()->rank, 0);
  EXPECT_EQ(words.first_death()->cause, "ended with 75");
}

TEST(OpenMpiWords, ThatOthersHaveLostARankIsNoCause) {
  OpenMpiWords words;
  (void)passed(words, kRule +
                          "\nAn MPI communication peer process has unexpectedly disconnected.  This\nusually indicates "
                          "a failure in the peer process\n" +
                          kRule + "\n");
  EXPECT_EQ(words.first_block(), "");
}

TEST(OpenMpiWords, TheFirstCauseIsKept) {
  OpenMpiWords words;
  EXPECT_EQ(passed(words, "[vm:1] ORTE_ERROR_LOG: Data unpack\n" + kMemory + kCode), "");
  EXPECT_EQ(words.first_block(),
            "\n  It appears as if there is not enough space for /dev/shm/vader_segment (the shared-memory backing\n  "
            "file).\n    Space Requested: 4194312 B");
}

TEST(OpenMpiWords, AHostWithoutTheProgramIsNamed) {
  for (const char* text :
       {"mpirun was unable to find the specified executable file, and therefore\ndid not launch the "
        "job.\n\nNode:       b12\nExecutable: /opt/lock-step\n",
        "mpirun was unable to launch the specified application as it could not access\nor execute an "
        "executable:\n\nExecutable: /opt/lock-step\nNode: b12\n\nwhile attempting to start process "
        "rank 1.\n"}) {
    OpenMpiWords words;
    EXPECT_EQ(passed(words, kRule + "\n" + text + kRule + "\n"), "");
    EXPECT_EQ(words.host_without_program(), "b12");
  }
  OpenMpiWords words;
  (void)passed(words, kKilled + kMemory);
  EXPECT_EQ(words.host_without_program(), "");
}

}  // namespace
}  // namespace lockstep::launch
