// What a launch's ranks must know and nobody else may see: keys of object stores, and the token of the control socket.
// Ranks of this host inherit them. `mpirun -x` would send them to others in clear, so these get them through the agent,
// which is ssh or as safe, into a file in memory that only their user can read.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace lockstep::launch {

using Variables = std::map<std::string, std::string>;  ///< of an environment

inline constexpr const char* kSecretVariable = "LOCKSTEP_SUPERVISOR_SECRET";  ///< the token of the control socket

/// Variables of object stores, which hold keys. `environment`: as environ.
[[nodiscard]] Variables secret_variables(const char* const* environment);

/// `lockstep launch --keep MARK`, which reads stdin, expects this text there.
[[nodiscard]] std::string to_text(const Variables& secrets);

/// Stdin of this process, whatever it is.
[[nodiscard]] std::string text_from_stdin();

/// Keeps them in this host's memory. Throws Error(infrastructure) if the text is not complete, and Error(unfit_host) if
/// another version of lockstep has sent it.
void keep_secrets(const std::string& mark, std::string_view text);

/// Adds what is kept for this process's launch, if anything is, to its environment, which may have the token already.
/// Call it while there is one thread.
void take_secrets();

/// Removes them. No rank can take them any more.
void drop_secrets(const std::string& mark) noexcept;

}  // namespace lockstep::launch
