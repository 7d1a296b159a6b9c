#include "launch/pod/ssh_files.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <chrono>
#include <set>

#include "core/files.hpp"
#include "launch/child.hpp"
#include "lockstep/error.hpp"

namespace lockstep::launch {

namespace {

constexpr std::chrono::seconds kKeygenPatience{30};

// False for variables that belong to a session, or that cannot be quoted.
bool can_pass(const std::string& name, const std::string& value) {
  static const std::set<std::string> own = {"HOSTNAME", "OLDPWD", "PWD", "SHLVL", "USER", "LOGNAME", "_"};
  if (own.contains(name) || name.starts_with("SSH_")) return false;
  return (name + value).find_first_of("\"\\\n\r") == std::string::npos;
}

void write_private(const SshSettings& settings, const std::string& name, const std::string& text) {
  const std::string path = settings.folder + "/" + name;
  const mode_t before = umask(0077);  // ssh refuses a key that others can read
  const std::string problem = try_write_whole_file(path, text);
  umask(before);
  if (!problem.empty()) {
    throw Error(ExitCode::cannot_create,
                fmt::format("--state: cannot write {}: {}; mount a folder there that this user may write to (an "
                            "emptyDir)",
                            path, problem));
  }
}

std::string public_part(const std::string& key, const std::string& given) {
  const CommandOutput made = run_command({"ssh-keygen", "-y", "-P", "", "-f", key}, kKeygenPatience);
  if (made.code == 0) return made.output.substr(0, made.output.find('\n'));
  throw Error(ExitCode::configuration,
              fmt::format("--key: expected a private key without a password in {}; ssh-keygen ended with {}: {}", given,
                          made.code, made.output.substr(0, made.output.find('\n'))));
}

}  // namespace

std::string sshd_config(const SshSettings& settings, const std::map<std::string, std::string>& environment) {
  std::string text = fmt::format(
      "Port {}\nHostKey {}/key\nAuthorizedKeysFile {}/authorized_keys\nAllowUsers {}\n"
      "AuthenticationMethods publickey\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
      "PermitRootLogin prohibit-password\nUsePAM no\nPidFile none\nStrictModes no\nAllowTcpForwarding no\n"
      "X11Forwarding no\nPrintMotd no\nMaxStartups 1000\nLogLevel FATAL\n",
      settings.port, settings.folder, settings.folder, settings.user);
  // All in one line, because sshd uses only the first one.
  text += "SetEnv";
  for (const auto& [name, value] : environment) {
    if (can_pass(name, value)) text += fmt::format(" \"{}={}\"", name, value);
  }
  return text + "\n";
}

std::string ssh_config(const SshSettings& settings, const Hosts& hosts) {
  std::string text;
  for (const Host& host : hosts) {
    if (const std::string label = first_label(host.name); label != host.name) {
      text += fmt::format("Host {}\n  HostName {}\n", label, host.name);
    }
  }
  return text + fmt::format(
                    "Host *\n  Port {}\n  User {}\n  IdentityFile {}/key\n  IdentitiesOnly yes\n  IdentityAgent none\n"
                    "  StrictHostKeyChecking yes\n  UserKnownHostsFile {}/known_hosts\n"
                    "  GlobalKnownHostsFile /dev/null\n  BatchMode yes\n  ConnectTimeout 5\n  LogLevel ERROR\n",
                    settings.port, settings.user, settings.folder, settings.folder);
}

std::string ssh_config_path(const SshSettings& settings) {
  return settings.folder + "/ssh_config";
}

std::string ssh_agent_command(const SshSettings& settings) {
  return fmt::format("ssh -F {}", ssh_config_path(settings));
}

void write_ssh_files(const SshSettings& settings, const std::string& key, const Hosts& hosts,
                     const std::map<std::string, std::string>& environment) {
  const auto text = read_whole_file(key);
  if (!text) {
    throw Error(ExitCode::configuration,
                fmt::format("--key: cannot read '{}'; give the private key that all pods of the job share", key));
  }
  write_private(settings, "key", *text);
  const std::string own = public_part(settings.folder + "/key", key);
  write_private(settings, "authorized_keys", own + "\n");
  write_private(settings, "known_hosts", fmt::format("* {}\n", own));
  write_private(settings, "sshd_config", sshd_config(settings, environment));
  write_private(settings, "ssh_config", ssh_config(settings, hosts));
}

}  // namespace lockstep::launch
