#include "launch/mpirun.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "comm/transport/mpi_session.hpp"
#include "launch/allocation.hpp"
#include "launch/processes.hpp"

namespace lockstep::launch {

namespace {

constexpr std::array<std::string_view, 4> kPassedOn = {"NCCL_", "OFI_NCCL_", "FI_", "UCX_"};

}  // namespace

std::vector<std::string> mpirun_command(const MpirunOptions& options, int open_mpi_major) {
  std::vector<std::string> command = {"mpirun", "-n", fmt::format("{}", options.ranks), "--bind-to", "none"};
  if (open_mpi_major >= 5) {
    command.insert(command.end(), {"--map-by", ":OVERSUBSCRIBE"});
  } else {
    command.emplace_back("--oversubscribe");
  }
  if (!options.hosts.empty()) command.insert(command.end(), {"--host", to_text(options.hosts)});
  command.insert(command.end(), {"--mca", "mpi_yield_when_idle", "1"});
  // Ranks of one host communicate through shared memory. If its transport is named, MPI_Init opens nothing else; with a
  // list of exclusions ("^tcp") it opens every network library, which takes more than a second, and Open MPI 5 then
  // warns about network cards that it cannot pair.
  if (options.hosts.size() <= 1 && std::getenv("OMPI_MCA_btl") == nullptr && std::getenv("OMPI_MCA_pml") == nullptr) {
    command.insert(command.end(),
                   {"--mca", "pml", "ob1", "--mca", "btl", open_mpi_major >= 5 ? "self,sm" : "self,vader"});
  }
  // An unknown setting is ignored silently, and passed on to the daemons of other hosts, which are then found by it.
  if (!options.mark.empty()) command.insert(command.end(), {"--mca", kMarkSetting, options.mark});
  for (const auto& [name, value] : options.environment) {
    command.emplace_back("-x");
    command.push_back(name);
  }
  if (geteuid() == 0) command.emplace_back("--allow-run-as-root");
  return command;
}

std::vector<std::string> mpirun_command(const MpirunOptions& options) {
  return mpirun_command(options, comm::open_mpi_major());
}

std::string why_mpirun_fails() {
  constexpr std::size_t kLongestName = 56;
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "";
  const std::string_view first = std::string_view(name.data()).substr(0, std::string_view(name.data()).find('.'));
  if (first.size() <= kLongestName) return "";
  return fmt::format(
      "; Open MPI 4 crashes on a host whose name has more than {} letters, and this one's has {}: give it "
      "a shorter one",
      kLongestName, first.size());
}

std::map<std::string, std::string> passed_on_variables(const char* const* environment) {
  std::map<std::string, std::string> found;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const bool ours = std::any_of(kPassedOn.begin(), kPassedOn.end(),
                                  [&](std::string_view prefix) { return entry.starts_with(prefix); });
    const std::size_t name = entry.find('=');
    if (ours && name != std::string_view::npos) found.emplace(entry.substr(0, name), entry.substr(name + 1));
  }
  return found;
}

std::map<std::string, std::string> mpirun_environment(const MpirunOptions& options) {
  auto environment = options.environment;
  environment.insert(options.secrets.begin(), options.secrets.end());
  if (!options.agent.empty()) {
    environment["OMPI_MCA_plm_rsh_agent"] = options.agent;
    environment["PRTE_MCA_plm_ssh_agent"] = options.agent;
  }
  if (options.by_slurm) {
    environment["SLURM_OVERLAP"] = "1";  // the daemons' step does not wait for other steps of the job to end
  } else if (in_slurm_job()) {
    // In a job of Slurm, mpirun would take all of its hosts, and reach them by srun, whatever it is told here.
    for (const char* family : {"OMPI_MCA_", "PRTE_MCA_"}) {
      environment[fmt::format("{}ras", family)] = environment[fmt::format("{}plm", family)] = "^slurm";
    }
  }
  // Without it, and for a user whom the system does not know, mpirun crashes.
  if (std::getenv("HOME") == nullptr) environment["HOME"] = "/";
  // Only this host must be able to reach the others.
  environment["OMPI_MCA_plm_rsh_no_tree_spawn"] = environment["PRTE_MCA_plm_ssh_no_tree_spawn"] = "1";
  // A daemon whose connection was lost without notice detects that in seconds, not in hours.
  for (const char* family : {"OMPI_MCA_oob_tcp", "PRTE_MCA_oob_tcp"}) {
    environment[fmt::format("{}_keepalive_time", family)] = "10";
    environment[fmt::format("{}_keepalive_intvl", family)] = "5";
    environment[fmt::format("{}_keepalive_probes", family)] = "4";
  }
  return environment;
}

}  // namespace lockstep::launch
