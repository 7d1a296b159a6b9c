#include "launch/hosts.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <functional>

#include "lockstep/error.hpp"

namespace lockstep::launch {
namespace {

std::string usage_error(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "no error";
}

TEST(Hosts, AListAddsUpAHostNamedTwice) {
  EXPECT_EQ(parse_hosts("a:2,b,a"), (Hosts{{"a", 3}, {"b", 1}}));
  EXPECT_EQ(to_text(parse_hosts("node-1.x:4,10.0.0.2:2")), "node-1.x:4,10.0.0.2:2");
}

TEST(Hosts, AFileMayCommentAndCountSlotsBothWays) {
  EXPECT_EQ(parse_hostfile("# ours\n\na slots=2\nb:3  # fast\nc\n", "hosts"), (Hosts{{"a", 2}, {"b", 3}, {"c", 1}}));
}

TEST(Hosts, MistakesNameTheirPlace) {
  EXPECT_EQ(usage_error([] { (void)parse_hosts("a:0"); }), "--hosts: expected a positive number of slots, found '0'");
  EXPECT_EQ(usage_error([] { (void)parse_hosts("a:999999,b:1,c:2147483647"); }),
            "--hosts: expected at most 1000000 slots in all, found 'c:2147483647'");
  EXPECT_EQ(usage_error([] { (void)parse_hosts("a:2x"); }), "--hosts: expected a positive number of slots, found '2x'");
  EXPECT_EQ(usage_error([] { (void)parse_hosts("-oProxyCommand=x"); }),
            "--hosts: expected a host's name, found '-oProxyCommand=x'");
  EXPECT_EQ(usage_error([] { (void)parse_hosts(""); }), "--hosts: expected hosts such as a:2,b:2, found ''");
  EXPECT_EQ(usage_error([] { (void)parse_hostfile("a\nb cpus=2\n", "hosts"); }),
            "hosts:2: expected a host, then slots=N, found 'cpus=2'");
  EXPECT_EQ(usage_error([] { (void)read_hostfile("/nowhere"); }), "--hostfile: cannot read '/nowhere'");
}

TEST(Hosts, TheFirstSlotsAreTaken) {
  const Hosts hosts = {{"a", 2}, {"b", 4}, {"c", 1}};
  EXPECT_EQ(first_slots(hosts, 3), (Hosts{{"a", 2}, {"b", 1}}));
  EXPECT_EQ(first_slots(hosts, 0), hosts);
  EXPECT_EQ(first_slots(hosts, 100), hosts);
  EXPECT_EQ(count_slots(hosts), 7);
}

TEST(Hosts, ThisMachineIsLocalByItsName) {
  std::array<char, 256> name{};
  ASSERT_EQ(gethostname(name.data(), name.size() - 1), 0);
  EXPECT_TRUE(is_local(name.data()));
  EXPECT_TRUE(is_local("localhost"));
  EXPECT_TRUE(is_local(first_label(name.data()) + ".a-service")) << "as Kubernetes calls a pod";
  EXPECT_FALSE(is_local("surely-not-this-one"));
}

TEST(Hosts, AddressesTellMachinesOfOneFirstLabelApart) {
  int asked = 0;
  const auto of_rack1 = [&](const std::string& host) -> std::optional<bool> {
    ++asked;
    if (host == "gpu.nowhere") return std::nullopt;
    return host == "gpu.rack1" || host == "gpu";
  };
  EXPECT_TRUE(is_this_machine("gpu.rack1", "gpu", of_rack1));
  EXPECT_FALSE(is_this_machine("gpu.rack2", "gpu", of_rack1));
  EXPECT_TRUE(is_this_machine("gpu", "gpu.rack1", of_rack1));
  EXPECT_TRUE(is_this_machine("gpu.nowhere", "gpu", of_rack1)) << "there is nothing but its name";
  EXPECT_EQ(asked, 4);
  EXPECT_TRUE(is_this_machine("gpu", "gpu", of_rack1));
  EXPECT_FALSE(is_this_machine("gpu2", "gpu", of_rack1));
  EXPECT_FALSE(is_this_machine("gpu.rack2", "gpu.rack1", of_rack1));
  EXPECT_EQ(asked, 4) << "the names say it";
}

TEST(Hosts, AnAddressIsOwnIfAnInterfaceHasIt) {
  EXPECT_EQ(has_own_address("localhost"), true);
  EXPECT_EQ(has_own_address("127.0.1.1"), true);
  EXPECT_EQ(has_own_address("192.0.2.1"), false) << "of the block for documentation";
  EXPECT_EQ(has_own_address("-"), std::nullopt) << "no name";
}

TEST(Hosts, WithADomainAllOfANameCounts) {
  EXPECT_FALSE(same_machine("gpu.rack1", "gpu.rack2"));
  EXPECT_TRUE(same_machine("gpu.rack1", "gpu.rack1"));
  EXPECT_TRUE(same_machine("gpu", "gpu.rack1")) << "the kernel's name has no domain on many machines";
  EXPECT_FALSE(same_machine("gpu1", "gpu.rack1"));
}

// The hosts that a launch reads from a script's output.
Hosts discovered(const std::string& script) {
  BackgroundCommand command({"sh", "-c", script}, std::chrono::seconds(20));
  auto result = command.poll();
  for (; !result; result = command.poll()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return discovered_hosts("hosts.sh", *result);
}

TEST(Hosts, AScriptsWarningsAreNoHosts) {
  EXPECT_EQ(discovered("echo a slots=2; echo deprecated >&2; echo b"), (Hosts{{"a", 2}, {"b", 1}}));
}

TEST(Hosts, AScriptThatFailsSaysWhat) {
  try {
    (void)discovered("echo a; echo no route to the scheduler >&2; exit 3");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::infrastructure);
    EXPECT_STREQ(error.what(), "--discover: 'hosts.sh' ended with 3: no route to the scheduler");
  }
}

TEST(Hosts, AScriptThatTakesTooLongIsKilled) {
  BackgroundCommand command({"sleep", "1000"}, std::chrono::milliseconds(100));
  auto result = command.poll();
  for (; !result; result = command.poll()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(result->code, 124);
}

}  // namespace
}  // namespace lockstep::launch
