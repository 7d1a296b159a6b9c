// Queries a Prometheus server over its HTTP interface.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace lockstep::telemetry {

struct PrometheusSample {
  std::map<std::string, std::string> labels;
  double value = 0;
};

struct PrometheusAnswer {
  std::vector<PrometheusSample> samples;
  std::string problem;  ///< why there is no answer; empty: there is one
};

/// The instant vector of a PromQL expression. `url`: the server's, "http://host:9090". Never throws.
[[nodiscard]] PrometheusAnswer query_prometheus(const std::string& url, const std::string& expression,
                                                std::chrono::milliseconds timeout);

/// Parses the server's JSON.
[[nodiscard]] PrometheusAnswer parse_answer(const std::string& text);

}  // namespace lockstep::telemetry
