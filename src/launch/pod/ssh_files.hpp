// The files that ssh and sshd of a pod read, all in one directory of this pod only.
//
// One key serves the whole job: as every user's key and as every host's. So each pod can verify its peers strictly
// without having met them before, and accepts nothing else.
#pragma once

#include <map>
#include <string>

#include "launch/hosts.hpp"

namespace lockstep::launch {

struct SshSettings {
  std::string folder;  ///< for the files named below; absolute, without white space
  std::string user;    ///< the only one, at both ends
  int port = 2222;
};

/// sshd_config: uses the files `key` and `authorized_keys`. `environment` is what sessions get, so that ranks started
/// by ssh have the variables of the pod's specification.
[[nodiscard]] std::string sshd_config(const SshSettings& settings,
                                      const std::map<std::string, std::string>& environment);

/// ssh_config: uses the files `key` and `known_hosts`. Open MPI may shorten a host's name to its first label, which DNS
/// does not know; this file maps it.
[[nodiscard]] std::string ssh_config(const SshSettings& settings, const Hosts& hosts);

[[nodiscard]] std::string ssh_config_path(const SshSettings& settings);

/// The command that runs another one on a pod: "ssh -F FOLDER/ssh_config".
[[nodiscard]] std::string ssh_agent_command(const SshSettings& settings);

/// Makes the folder and writes all of them; `key` is the file of a private key, which may be readable by others. Throws
/// Error(configuration) if it is not a key, Error(cannot_create) if the folder cannot be written.
void write_ssh_files(const SshSettings& settings, const std::string& key, const Hosts& hosts,
                     const std::map<std::string, std::string>& environment);

}  // namespace lockstep::launch
