// What a pod tells Kubernetes when its node is unfit: an event that names the node, and a pod there without work, which
// the run's pods keep away from, so that the replacement goes elsewhere. The objects are the chart's; the pod fills in
// what only it knows.
#pragma once

#include <map>
#include <string>

namespace lockstep::launch {

/// `text` with $(NAME) replaced by the variables of these names, in the form of a JSON string.
[[nodiscard]] std::string filled_in(std::string text, const std::map<std::string, std::string>& variables);

/// Makes the objects of `file`, a JSON list of {"path": of the API, "object": ...} in which $(MESSAGE), $(TIME),
/// $(NODE_HASH) and the names of environment variables are filled in. One that exists is left alone. `account`: the
/// folder with the pod's token. Problems are warnings: the pod ends in any case.
void report_unfit_node(const std::string& file, const std::string& account, const std::string& message);

}  // namespace lockstep::launch
