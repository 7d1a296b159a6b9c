#include "launch/allocation.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "lockstep/error.hpp"

namespace lockstep::launch {
namespace {

std::string usage_error(const std::string& nodes, const std::string& tasks) {
  try {
    (void)parse_allocation(nodes, tasks);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "no error";
}

TEST(Allocation, HostsAreThoseOfSlurmsLists) {
  EXPECT_EQ(to_text(parse_allocation("a", "4")), "a:4");
  EXPECT_EQ(to_text(parse_allocation("gpu[1-3,007],login.x", "2(x3),1,8")), "gpu1:2,gpu2:2,gpu3:2,gpu007:1,login.x:8");
  EXPECT_EQ(to_text(parse_allocation("n[08-11]", "1(x4)")), "n08:1,n09:1,n10:1,n11:1");
  EXPECT_EQ(to_text(parse_allocation("r[1-2]n[1-2]-x", "1(x2),2(x2)")), "r1n1-x:1,r1n2-x:1,r2n1-x:2,r2n2-x:2");
}

TEST(Allocation, MistakesNameTheVariable) {
  const std::string try_this = "; --hosts a:2,b:2 names the hosts instead";
  for (const char* nodes : {"a[1-", "a]1[", "a[3-1]", "a[x]", "a[]", "a[1-99999999]"}) {
    EXPECT_EQ(usage_error(nodes, "1"),
              std::string("SLURM_JOB_NODELIST: expected hosts such as a[1-3,07],b, found '") + nodes + "'" + try_this);
  }
  for (const char* tasks : {"", "0", "2(x", "2(x0)", "2(3)", "x", "2(x2),"}) {
    EXPECT_EQ(usage_error("a[1-2]", tasks),
              std::string("SLURM_TASKS_PER_NODE: expected tasks such as 2(x3),1, found '") + tasks + "'" + try_this);
  }
  EXPECT_EQ(usage_error("a[1-2]", "1(x3)"),
            "SLURM_TASKS_PER_NODE: expected a number for each of the 2 hosts of SLURM_JOB_NODELIST, found '1(x3)'" +
                try_this);
  EXPECT_EQ(usage_error("-oX", "1"), "SLURM_JOB_NODELIST: expected a host's name, found '-oX'");
}

TEST(Allocation, OutsideAJobThereIsNone) {
  unsetenv("SLURM_JOB_ID");
  setenv("SLURM_JOB_NODELIST", "a[1-2]", 1);
  setenv("SLURM_TASKS_PER_NODE", "3(x2)", 1);
  EXPECT_EQ(allocated_hosts(), std::nullopt);
  setenv("SLURM_JOB_ID", "7", 1);
  EXPECT_EQ(allocated_hosts(), (Hosts{{"a1", 3}, {"a2", 3}}));
  for (const char* name : {"SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE"}) unsetenv(name);
}

}  // namespace
}  // namespace lockstep::launch
