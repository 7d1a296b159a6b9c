// The exporter with real sockets.
#include "observe/telemetry/exporter.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "core/spans.hpp"
#include "lockstep/error.hpp"
#include "telemetry/http_get.hpp"

namespace lockstep::telemetry {
namespace {

std::shared_ptr<RankMetrics> some_metrics() {
  auto metrics = std::make_shared<RankMetrics>();
  metrics->begin(Metric::steps);
  metrics->begin(Metric::step_seconds);
  return metrics;
}

TEST(Exporter, ServesWhatIsThereNow) {
  const auto metrics = some_metrics();
  int samples = 0;
  Exporter exporter({.rank = 3}, metrics, [&](RankMetrics& to) { to.set(Metric::process_threads, ++samples); });
  EXPECT_GT(exporter.port(), 0);
  EXPECT_EQ(exporter.problem(), "");
  metrics->add(Metric::steps, 7);
  metrics->observe(Metric::step_seconds, 0.3);
  const std::string text = http_get(exporter.port(), "/metrics");
  EXPECT_NE(text.find("HTTP/1.1 200 OK"), std::string::npos) << text;
  EXPECT_NE(text.find("# TYPE lockstep_steps_total counter\nlockstep_steps_total{rank=\"3\"} 7\n"), std::string::npos);
  EXPECT_NE(text.find("lockstep_step_duration_seconds_bucket{rank=\"3\",le=\"0.5\"} 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("lockstep_step_duration_seconds_bucket{rank=\"3\",le=\"+Inf\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("lockstep_process_threads{rank=\"3\"} 1\n"), std::string::npos);
  EXPECT_NE(http_get(exporter.port(), "/metrics").find("lockstep_process_threads{rank=\"3\"} 2\n"), std::string::npos);
  EXPECT_EQ(exporter.scrapes(), 2U);
}

bool has_ipv6() {
  const int probe = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto here = socket_address("::1", 0);
  const bool has = ::bind(probe, here->pointer(), here->length) == 0;
  ::close(probe);
  return has;
}

TEST(Exporter, ServesBothFamiliesOrOne) {
  if (!has_ipv6()) GTEST_SKIP() << "this machine has no ::1";
  for (const char* address : {"::", "::1"}) {
    const auto metrics = some_metrics();
    Exporter exporter({.address = address}, metrics, {});
    metrics->add(Metric::steps, 7);
    for (int scrape = 0; scrape < 3; ++scrape) {
      const std::string text = http_get(exporter.port(), "/metrics", "::1");
      EXPECT_NE(text.find("lockstep_steps_total{rank=\"0\"} 7\n"), std::string::npos) << text;
    }
    EXPECT_NE(http_get(exporter.port(), "/metrics"), "");
    Exporter second({.address = address, .port = exporter.port()}, some_metrics(), {});
    EXPECT_EQ(second.problem(), "in use");
  }
}

TEST(Exporter, APortInUseIsReplaced) {
  Exporter first({}, some_metrics(), {});
  Exporter second({.port = first.port()}, some_metrics(), {});
  EXPECT_EQ(second.problem(), "in use");
  EXPECT_NE(second.port(), first.port());
  EXPECT_NE(http_get(second.port(), "/metrics").find("lockstep_steps_total"), std::string::npos);
}

// The first exporter of a process initializes the server's library. (Tested when run by itself, as ctest does.)
TEST(Exporter, TheFirstOfAProcessMayBeSeveralAtATime) {
  std::atomic<int> waiting{8};
  std::vector<std::jthread> ranks;
  for (int r = 0; r < 8; ++r) {
    ranks.emplace_back([&] {
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      const Exporter exporter({}, some_metrics(), {});
      EXPECT_GT(exporter.port(), 0);
    });
  }
}

TEST(Exporter, RanksThatStartTogetherGetAPortEach) {
  const int port = Exporter({}, some_metrics(), {}).port();  // free at this moment
  std::vector<std::unique_ptr<Exporter>> exporters(8);
  {
    std::vector<std::jthread> ranks;
    for (auto& exporter : exporters) {
      ranks.emplace_back([&exporter, port] {
        exporter = std::make_unique<Exporter>(ExporterOptions{.port = port}, some_metrics(), nullptr);
      });
    }
  }
  std::set<int> ports;
  for (const auto& exporter : exporters) {
    ASSERT_NE(exporter, nullptr);
    ports.insert(exporter->port());
    EXPECT_EQ(exporter->problem(), exporter->port() == port ? "" : "in use");
  }
  EXPECT_EQ(ports.size(), exporters.size());
}

TEST(Exporter, ItsPortIsFreeAgainAfterIt) {
  int port = 0;
  {
    const Exporter exporter({}, some_metrics(), {});
    port = exporter.port();
    (void)http_get(port, "/metrics");
  }
  const Exporter again({.port = port}, some_metrics(), {});
  EXPECT_EQ(again.port(), port);
}

// A request that never becomes whole would by default keep a thread of the server for 30 s.
TEST(Exporter, RequestsThatNeverBecomeWholeDoNotSilenceIt) {
  Exporter exporter({}, some_metrics(), {});
  std::vector<int> open;
  for (int i = 0; i < 20; ++i) open.push_back(http_begin(exporter.port(), "GET /metr"));
  const auto start = Clock::now();
  EXPECT_NE(http_get(exporter.port(), "/metrics").find("lockstep_steps_total"), std::string::npos);
  EXPECT_LT(seconds_since(start), 30);
  for (const int socket : open) ::close(socket);
}

TEST(Exporter, AnAddressOfAnotherHostIsRefused) {
  try {
    const Exporter exporter({.address = "192.0.2.1", .port = 9840, .key = "job.yaml:3:4: address"}, some_metrics(), {});
    FAIL() << "it listens on an address that is not ours";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_STREQ(error.what(),
                 "job.yaml:3:4: address: expected an address of this host, found 192.0.2.1: Cannot assign requested "
                 "address; try 127.0.0.1, or 0.0.0.0 for all of them");
  }
}

TEST(Exporter, ScrapesWhileAThreadWrites) {
  const auto metrics = some_metrics();
  const Exporter exporter({}, metrics, {});
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    while (!stop) {
      metrics->add(Metric::steps, 1);
      metrics->observe(Metric::step_seconds, 0.01);
    }
  });
  for (int i = 0; i < 50; ++i) {
    EXPECT_NE(http_get(exporter.port(), "/metrics").find("lockstep_steps_total{rank=\"0\"}"), std::string::npos);
  }
  stop = true;
  writer.join();
}

}  // namespace
}  // namespace lockstep::telemetry
