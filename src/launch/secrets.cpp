#include "launch/secrets.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "core/files.hpp"
#include "launch/processes.hpp"
#include "lockstep/error.hpp"
#include "lockstep/version.hpp"

namespace lockstep::launch {

namespace {

constexpr std::string_view kStoreVariables = "AWS_";
constexpr std::string_view kLast = "end";  // a connection that breaks leaves no half of a key

std::string file_of(const std::string& mark) {
  if (mark.empty() || mark.find('/') != std::string::npos) {
    throw Error(ExitCode::usage, fmt::format("launch --keep: expected the name of a launch, found '{}'", mark));
  }
  return fmt::format("/dev/shm/{}.secrets", mark);
}

std::string first_line() {
  return fmt::format("lockstep {}{}", version(), '\0');
}

}  // namespace

Variables secret_variables(const char* const* environment) {
  Variables found;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::size_t name = entry.find('=');
    if (name != std::string_view::npos && entry.starts_with(kStoreVariables)) {
      found.emplace(entry.substr(0, name), entry.substr(name + 1));
    }
  }
  return found;
}

std::string to_text(const Variables& secrets) {
  std::string text = first_line();
  for (const auto& [name, value] : secrets) text.append(name).append("=").append(value).push_back('\0');
  return text.append(kLast);
}

std::string text_from_stdin() {
  std::string text;
  std::array<char, 4096> block{};
  for (ssize_t count = 0; (count = read(STDIN_FILENO, block.data(), block.size())) > 0;) {
    text.append(block.data(), count);
  }
  return text;
}

void keep_secrets(const std::string& mark, std::string_view text) {
  const std::string file = file_of(mark);
  if (!text.ends_with(kLast)) {
    throw Error(
        ExitCode::infrastructure,
        fmt::format("launch --keep: expected the launch's secrets on stdin, found {} bytes; the agent must pass "
                    "its stdin on",
                    text.size()));
  }
  if (!text.starts_with(first_line())) {
    throw Error(ExitCode::unfit_host,
                fmt::format("launch --keep: expected a launch of lockstep {}, found one of another "
                            "version; install the same version on all hosts",
                            version()));
  }
  text.remove_suffix(kLast.size());
  const mode_t mask = umask(077);
  write_whole_file(file, text);
  umask(mask);
}

void take_secrets() {
  const char* const mark = std::getenv(kMarkVariable);
  if (mark == nullptr || *mark == '\0') return;
  const std::string file = file_of(mark);
  struct stat status {};
  if (lstat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid()) return;
  const std::string text = read_whole_file(file).value_or("");
  for (std::size_t at = 0, end = 0; (end = text.find('\0', at)) != std::string::npos; at = end + 1) {
    const std::string entry = text.substr(at, end - at);
    const std::size_t name = entry.find('=');
    if (name == std::string::npos) continue;
    const std::string variable = entry.substr(0, name);
    setenv(variable.c_str(), entry.c_str() + name + 1, variable == kSecretVariable ? 0 : 1);
  }
}

void drop_secrets(const std::string& mark) noexcept {
  if (!mark.empty() && mark.find('/') == std::string::npos) (void)unlink(file_of(mark).c_str());
}

}  // namespace lockstep::launch
