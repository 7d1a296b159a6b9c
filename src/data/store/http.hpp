// HTTP beside the store itself: a small request to a service that hands out keys or takes a report, and the encoding of
// what is sent.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace lockstep::store {

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  std::vector<std::string> headers = {};
  std::string body = {};
  std::chrono::milliseconds patience{5'000};
  bool direct = false;       ///< the service is on this host, its link or in its cluster: no proxy is asked
  std::string ca_file = {};  ///< certificates (PEM) that may have signed the service's; empty: the system's
};

struct HttpAnswer {
  long status = 0;  ///< 0: none came // NOLINT: libcurl's type
  std::string text = {};
  std::string problem = {};
};

/// All but unreserved characters, and `keep`, as %XX: as a signature wants a path or a value of a query, and as forms
/// are.
[[nodiscard]] std::string percent_encoded(const std::string& text, const std::string& keep = "");

[[nodiscard]] HttpAnswer send(const HttpRequest& request);

}  // namespace lockstep::store
