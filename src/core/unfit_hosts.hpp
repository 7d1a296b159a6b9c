// A host that cannot run the job as it is, while another one may: it lacks what the others have, or differs from them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lockstep/error.hpp"

namespace lockstep {

/// What all ranks have found together: these hosts are to blame, whichever rank reports it. Error(unfit_host) alone
/// blames the host of the rank that throws it.
class UnfitHosts : public Error {
 public:
  UnfitHosts(std::vector<std::string> hosts, const std::string& message)
      : Error(ExitCode::unfit_host, message), hosts_(std::move(hosts)) {}
  const std::vector<std::string>& hosts() const noexcept { return hosts_; }

 private:
  std::vector<std::string> hosts_;
};

}  // namespace lockstep
