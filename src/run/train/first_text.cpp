#include "run/train/first_text.hpp"

#include <algorithm>
#include <utility>

#include "comm/transport/point_to_point.hpp"

namespace lockstep::train {

std::string first_text(Communicator& communicator, const Operation& operation,
                       const std::function<std::string()>& find) {
  std::string own;
  const auto found = comm::work_together(communicator, operation, [&](comm::WorkProgress& /*at once*/) {
    own = find();
    return !own.empty();
  });
  const auto first = std::find(found.begin(), found.end(), true);
  if (first == found.end()) return "";
  return comm::broadcast_text(communicator, std::move(own), first - found.begin(), operation);
}

}  // namespace lockstep::train
