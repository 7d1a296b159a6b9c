#include "comm/transport/host_leader.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "comm/transport/point_to_point.hpp"
#include "comm/transport/topology.hpp"
#include "lockstep/error.hpp"

namespace lockstep::comm {

namespace {

constexpr int kTag = 1;

using Header = std::array<std::int64_t, 2>;  ///< exit code (0: the result follows; else a message), length

// Sends a message from the first of these ranks to all of them: a text, or an error, which is then thrown.
std::string spread(Communicator& communicator, const std::vector<int>& ranks, ExitCode code, std::string text) {
  const Operation operation{"index", 0, kStartDeadline};
  Header header{static_cast<std::int64_t>(code), static_cast<std::int64_t>(text.size())};
  broadcast_in_group(communicator, ranks, std::as_writable_bytes(std::span(header)), kTag, operation);
  text.resize(header[1]);
  if (!text.empty()) {
    broadcast_in_group(communicator, ranks, std::as_writable_bytes(std::span(text)), kTag, operation);
  }
  if (header[0] != 0) throw Error(static_cast<ExitCode>(header[0]), text);
  return text;
}

}  // namespace

std::string make_once_a_host(Communicator& communicator, const std::function<std::string()>& make) {
  const Hosts hosts(communicator.topology());
  const auto& ranks = hosts.ranks(hosts.host_of(communicator.rank()));
  if (ranks.front() != communicator.rank()) return spread(communicator, ranks, ExitCode::done, "");
  std::string made;
  try {
    made = make();
  } catch (const Error& error) {
    return spread(communicator, ranks, error.code(), error.what());  // also throws it here
  }
  return spread(communicator, ranks, ExitCode::done, std::move(made));
}

}  // namespace lockstep::comm
