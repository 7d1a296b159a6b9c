#include "config/root_keys.hpp"

namespace lockstep::config {

const std::vector<std::string>& chart_keys() {
  static const std::vector<std::string> keys{
      "cluster",      "image",       "imagePullSecrets", "groups",        "resources",        "queue",
      "persistence",  "data",        "network",          "observability", "security",         "mode",
      "nodeSelector", "tolerations", "affinity",         "nameOverride",  "fullnameOverride", "global"};
  return keys;
}

}  // namespace lockstep::config
