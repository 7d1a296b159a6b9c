#include "observe/telemetry/exporter.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/socket_address.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/exposition.hpp"
#include "observe/telemetry/ipv6_relay.hpp"

namespace lockstep::telemetry {

namespace {

constexpr std::chrono::milliseconds kKnocks{10};
constexpr const char* kAllOfBoth = "::";
// Of the server: while some are stuck with requests that never become whole, the others serve; a request has 2 s, so
// those in the queue get their turn, and the end of a run waits no longer.
constexpr const char* kThreads = "8";
constexpr const char* kRequestMilliseconds = "2000";

/// The errno of a server's bind() to this address and port; 0: success.
int bind_error(const std::string& address, int port) {
  const auto at = socket_address(address, port);
  if (!at) return EADDRNOTAVAIL;
  const int probe = ::socket(at->family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return errno;
  const int yes = 1;  // like the server: recently closed connections do not block a port
  (void)::setsockopt(probe, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const int error = ::bind(probe, at->pointer(), at->length) == 0 && ::listen(probe, 1) == 0 ? 0 : errno;
  ::close(probe);
  return error;
}

// What the server listens on: beside a relay, or where :: finds no IPv6, at addresses of IPv4.
std::string server_address(const std::string& address) {
  if (!is_ipv6(address)) return address;
  return address == kAllOfBoth ? "0.0.0.0" : "127.0.0.1";
}

bool wants_relay(const std::string& address) {
  return is_ipv6(address) && (address != kAllOfBoth || bind_error("::1", 0) == 0);
}

bool has_loopback() {
  return bind_error("127.0.0.1", 0) == 0;
}

/// Connects without sending anything.
void knock(const std::string& address, int port) {
  const auto at = socket_address(address, port);
  const int visitor = ::socket(at->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (visitor < 0) return;
  (void)::connect(visitor, at->pointer(), at->length);
  ::close(visitor);
}

std::string problem_of(const ExporterOptions& options) {
  if (options.port == 0) return "";
  int error = bind_error(server_address(options.address), options.port);
  if (error == 0 && wants_relay(options.address)) error = bind_error(options.address, options.port);
  if (error == EADDRINUSE) return "in use";
  return error == EACCES ? "not allowed" : "";
}

}  // namespace

class Exporter::Source : public prometheus::Collectable {
 public:
  Source(int rank, std::shared_ptr<RankMetrics> metrics, std::function<void(RankMetrics&)> sample)
      : rank_(rank), metrics_(std::move(metrics)), sample_(std::move(sample)) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    const std::lock_guard lock(mutex_);
    if (sample_) sample_(*metrics_);
    ++scrapes_;
    return families_of(*metrics_, rank_);
  }
  std::size_t scrapes() const { return scrapes_; }

 private:
  int rank_;
  std::shared_ptr<RankMetrics> metrics_;
  std::function<void(RankMetrics&)> sample_;
  mutable std::mutex mutex_;  // serialises scrapes
  mutable std::atomic<std::size_t> scrapes_{0};
};

class Exporter::Server {
 public:
  explicit Server(const std::string& endpoint) : Server(endpoint, std::unique_lock(first_use())) {}
  void serve(const std::shared_ptr<Source>& source) { exposer_.RegisterCollectable(source); }
  int port() const { return exposer_.GetListeningPorts().at(0); }

 private:
  // The first server of a process initialises its library (civetweb), which is not thread-safe; ranks that are threads
  // could do it concurrently.
  Server(const std::string& endpoint, const std::unique_lock<std::mutex>& /*alone*/)
      : exposer_(std::vector<std::string>{"listening_ports", endpoint, "num_threads", kThreads, "request_timeout_ms",
                                          kRequestMilliseconds}) {}
  static std::mutex& first_use() {
    static std::mutex mutex;
    return mutex;
  }

  prometheus::Exposer exposer_;
};

Exporter::Exporter(ExporterOptions options, std::shared_ptr<RankMetrics> metrics,
                   std::function<void(RankMetrics&)> sample)
    : address_(server_address(options.address)),
      problem_(problem_of(options)),
      source_(std::make_shared<Source>(options.rank, std::move(metrics), std::move(sample))) {
  const auto start = [&](int port) {
    relay_.reset();
    server_ = std::make_unique<Server>(endpoint_text(address_, port));
    server_->serve(source_);
    port_ = server_->port();
    if (wants_relay(options.address)) relay_ = std::make_unique<Ipv6Relay>(options.address, port_);
  };
  if (problem_.empty()) {
    try {
      start(options.port);
      return;
    } catch (const std::exception&) {
      // Another rank of this host took the port after the check: they all start at the same time.
      problem_ = "in use";
    }
  }
  try {
    start(0);
  } catch (const std::exception&) {
    const int error = bind_error(options.address, 0);
    throw Error(ExitCode::configuration,
                fmt::format("{}: expected an address of this host, found {}: {}; {}", options.key, options.address,
                            error == 0 ? "this host's library for the metrics server needs IPv4" : std::strerror(error),
                            has_loopback() ? "try 127.0.0.1, or 0.0.0.0 for all of them"
                                           : "lo has no IPv4 address: ip address add 127.0.0.1/8 dev lo"));
  }
}

// The server notices that it should stop every 2 s, or when a connection arrives; so this makes connections.
Exporter::~Exporter() {
  std::atomic<bool> over{false};
  std::thread visitor([&] {
    while (!over) {
      knock(address_, port_);
      std::this_thread::sleep_for(kKnocks);
    }
  });
  server_.reset();
  over = true;
  visitor.join();
}

std::size_t Exporter::scrapes() const {
  return source_->scrapes();
}

std::string targets_json(const std::vector<ScrapeTarget>& targets, const std::string& address,
                         const MetricLabels& labels) {
  const bool any = address == "0.0.0.0" || address == "::";
  auto groups = nlohmann::ordered_json::array();
  for (const ScrapeTarget& target : targets) {
    nlohmann::ordered_json own;
    for (const auto& [name, value] : labels) own[name] = value;
    own["host"] = target.host;
    groups.push_back({{"targets", {endpoint_text(any ? target.host : address, target.port)}}, {"labels", own}});
  }
  return groups.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::telemetry
