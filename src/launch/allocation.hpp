// The hosts that Slurm has allocated to the job in which this program runs, and how a command gets to one of them.
#pragma once

#include <optional>
#include <string>

#include "launch/hosts.hpp"

namespace lockstep::launch {

/// Runs a command on a host of the allocation: these words, the host's name, and kSrunShell before the command. It
/// shares the host with what runs there already, whatever the job asked for a task of its own.
inline constexpr const char* kSrunAgent =
    "srun --overlap --mpi=none --nodes=1 --ntasks=1 --ntasks-per-node=1 --nodelist";
inline constexpr const char* kSrunShell = "sh -c";

/// Whether this process is part of a Slurm job (SLURM_JOB_ID).
[[nodiscard]] bool in_slurm_job();

/// The hosts of the job in SLURM_JOB_NODELIST, with a slot for each task in SLURM_TASKS_PER_NODE. nullopt outside a
/// job. Throws as parse_allocation().
[[nodiscard]] std::optional<Hosts> allocated_hosts();

/// Slurm's compressed lists: hosts as in "a[1-3,007],b", tasks as in "2(x3),1,4". Leading zeros are kept; a name may
/// have several brackets. Throws Error(usage), which names the variable.
[[nodiscard]] Hosts parse_allocation(const std::string& nodes, const std::string& tasks);

}  // namespace lockstep::launch
