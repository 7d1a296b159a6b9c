// Exporter: serves this rank's metrics to Prometheus over HTTP, on prometheus-cpp's threads.
//
// Prometheus finds the ranks of a run in a file for its `file_sd_configs`, which it rereads when it changes.
//
// Values that are cheap to read and change by themselves (processor time, memory, the GPU) are sampled at each scrape.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "observe/telemetry/rank_metrics.hpp"

namespace lockstep::telemetry {

class Ipv6Relay;

struct ExporterOptions {
  std::string address = "127.0.0.1";  ///< an IP address of this host; 0.0.0.0 for all of IPv4, :: for all
  int port = 0;                       ///< 0: any free one
  int rank = 0;
  std::string key = "job.telemetry.prometheus.address";  ///< the setting's name, for messages
};

class Exporter {
 public:
  /// `sample` is called before each scrape, by one of the exporter's threads, never by two at a time; it may write
  /// metrics that no other thread writes. A port that is in use or not allowed is replaced by a free one; problem()
  /// then says so. Throws Error(configuration) for an address that this host does not have.
  Exporter(ExporterOptions options, std::shared_ptr<RankMetrics> metrics, std::function<void(RankMetrics&)> sample);
  /// Finishes a scrape that is under way.
  ~Exporter();
  Exporter(const Exporter&) = delete;
  Exporter& operator=(const Exporter&) = delete;

  int port() const { return port_; }
  /// Why the port differs from the requested one: "in use"; empty: it does not.
  const std::string& problem() const { return problem_; }
  /// Number of scrapes answered so far.
  std::size_t scrapes() const;

 private:
  class Source;
  class Server;

  std::string address_, problem_;
  std::shared_ptr<Source> source_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Ipv6Relay> relay_;  ///< null: not needed
  int port_ = 0;
};

struct ScrapeTarget {
  std::string host;
  int port = 0;
};

/// JSON. `address`: what the ranks listen on; if that is all addresses, targets are given by host name. `labels` are
/// added to every series; `host` to those of each target.
[[nodiscard]] std::string targets_json(const std::vector<ScrapeTarget>& targets, const std::string& address,
                                       const MetricLabels& labels);

}  // namespace lockstep::telemetry
