#include "config/cluster.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "config/list_rules.hpp"
#include "config/scalar_rules.hpp"
#include "config/section.hpp"
#include "config/yaml_dialects.hpp"
#include "config/yaml_reader.hpp"
#include "core/files.hpp"

namespace lockstep::config {
namespace {

void check_device(const ClusterHosts& hosts, const Scope& scope) {
  if (hosts.device.empty() == hosts.profile.empty()) {
    scope.problem("device", fmt::format("expected device, a GPU's name, or profile, a file of `lockstep bench device`, "
                                        "found {}",
                                        hosts.device.empty() ? "neither" : "both"));
  }
}

Is<ClusterHosts> hosts_section() {
  using Hosts = ClusterHosts;
  return Section<Hosts>()
      .field("count", &Hosts::count, number().at_least(1), "how many such hosts there are")
      .field("ranks", &Hosts::ranks, number().at_least(1), "of each host")
      .field("device", &Hosts::device, text(), "of each rank: the GPU's name")
      .field("profile", &Hosts::profile, text(), "of the host's CPU: a file of `lockstep bench device`")
      .field("network", &Hosts::network, number().above(0), "bytes per second to other hosts, one way")
      .placed(&Hosts::place)
      .called("hosts such as {count: 2, ranks: 8, device: H100}")
      .check({"device", "profile"}, check_device);
}

Is<ClusterFile> cluster_section() {
  return Section<ClusterFile>()
      .field("network", &ClusterFile::network, number().above(0), "bytes per second between hosts, one way")
      .field("hosts", &ClusterFile::hosts, list_of(hosts_section(), {.least = 1}),
             "hosts that are alike, in order of ranks")
      .required();
}

}  // namespace

ClusterFile load_cluster(const std::string& path) {
  const auto text = std::filesystem::is_directory(path) ? std::nullopt : read_whole_file(path);
  if (!text) {
    throw Problems({{Place{.file = path}, "expected a cluster file, found none that can be read; check the path"}});
  }
  const Is<ClusterFile> section = cluster_section();
  Session session;
  session.file = path;
  session.folder = std::filesystem::path(path).parent_path().string();
  session.root = section.rule.get();
  const YamlNode root = parse_yaml(*text, session);
  if (session.broken) throw Problems(session.problems);
  ClusterFile cluster;
  section.rule->read(Cursor(root, "cluster", session), &cluster);
  refuse_ambiguous(root, "cluster", session);
  if (!session.problems.empty()) throw Problems(session.problems);
  for (ClusterHosts& hosts : cluster.hosts) {
    if (hosts.network == 0) hosts.network = cluster.network;
  }
  return cluster;
}

}  // namespace lockstep::config
