#include "launch/pod/unfit_node.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/digest.hpp"
#include "core/files.hpp"
#include "core/say.hpp"
#include "core/socket_address.hpp"
#include "data/store/http.hpp"
#include "observe/telemetry/unix_time.hpp"

namespace lockstep::launch {

namespace {

constexpr std::chrono::seconds kPatience{10};
constexpr long kExists = 409;  // NOLINT: libcurl's type

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::map<std::string, std::string> known_here(const std::string& message) {
  std::map<std::string, std::string> known = {{"MESSAGE", message},
                                              {"TIME", telemetry::utc_text(telemetry::unix_time())}};
  for (const char* name : {"LOCKSTEP_NODE", "LOCKSTEP_POD", "LOCKSTEP_POD_UID", "LOCKSTEP_JOB", "LOCKSTEP_JOB_UID"}) {
    known[name] = environment(name);
  }
  known["NODE_HASH"] = sha256(known["LOCKSTEP_NODE"]).substr(0, 8);
  return known;
}

std::string api_server() {
  const std::string host = environment("KUBERNETES_SERVICE_HOST"), port = environment("KUBERNETES_SERVICE_PORT");
  return is_ipv6(host) ? fmt::format("https://[{}]:{}", host, port) : fmt::format("https://{}:{}", host, port);
}

std::string problem_of(const store::HttpAnswer& answer) {
  if (answer.status == 0) return answer.problem;
  return answer.status < 300 || answer.status == kExists ? "" : fmt::format("{}: {}", answer.status, answer.text);
}

// Throws json's errors.
std::string make_objects(const std::string& file, const std::string& account, const std::string& message) {
  const auto token = read_whole_file(account + "/token");
  if (!token) return fmt::format("cannot read {}/token", account);
  store::HttpRequest request{.method = "POST", .patience = kPatience, .direct = true, .ca_file = account + "/ca.crt"};
  request.headers = {"Authorization: Bearer " + *token, "Content-Type: application/json"};
  const auto list = nlohmann::json::parse(filled_in(read_whole_file(file).value_or(""), known_here(message)));
  for (const auto& item : list) {
    request.url = api_server() + item.at("path").get<std::string>();
    request.body = item.at("object").dump();
    if (std::string problem = problem_of(store::send(request)); !problem.empty()) {
      return fmt::format("{}: {}", request.url, problem);
    }
  }
  return "";
}

}  // namespace

std::string filled_in(std::string text, const std::map<std::string, std::string>& variables) {
  for (const auto& [name, value] : variables) {
    const std::string place = fmt::format("$({})", name);
    const std::string quoted = nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    const std::string inside = quoted.substr(1, quoted.size() - 2);
    for (std::size_t at = 0; (at = text.find(place, at)) != std::string::npos; at += inside.size()) {
      text.replace(at, place.size(), inside);
    }
  }
  return text;
}

void report_unfit_node(const std::string& file, const std::string& account, const std::string& message) {
  if (file.empty()) return;
  std::string problem;
  try {
    problem = make_objects(file, account, message);
  } catch (const nlohmann::json::exception& error) {
    problem = error.what();
  }
  if (!problem.empty()) {
    say("warning: cannot tell Kubernetes that node {} is unfit, so this pod's replacement may be scheduled there "
        "again: {}\n",
        environment("LOCKSTEP_NODE"), problem);
  }
}

}  // namespace lockstep::launch
