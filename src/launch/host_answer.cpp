#include "launch/host_answer.hpp"

#include <fmt/format.h>

#include <sstream>
#include <string_view>

namespace lockstep::launch {

namespace {

constexpr std::string_view kVersion = "lockstep ", kFingerprint = "fingerprint: ";

}  // namespace

HostAnswer parse_host_answer(const std::string& output) {
  HostAnswer answer;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kVersion)) {
      answer.version = line.substr(kVersion.size());
    } else if (line.starts_with(kFingerprint)) {
      answer.fingerprint = line.substr(kFingerprint.size());
    } else if (!answer.fingerprint.empty() && !line.empty()) {
      answer.launch = line;
    }
  }
  return answer;
}

std::string why_unfit(const HostAnswer& found, const HostAnswer& expected) {
  if (!expected.version.empty() && found.version != expected.version) {
    return fmt::format("expected lockstep {}, which the others have, found {}; install the same version there",
                       expected.version, found.version);
  }
  if (!expected.fingerprint.empty() && found.fingerprint != expected.fingerprint) {
    return fmt::format(
        "expected the fingerprint of the others, {}, found {}; use one kind of processor and one "
        "version of the libraries, or set exact: preferred",
        expected.fingerprint, found.fingerprint);
  }
  if (!expected.launch.empty() && found.launch != expected.launch) {
    return fmt::format(
        "expected this launch's launch.lock in the run directory, found {}; mount the run directory "
        "there",
        found.launch.empty() ? "none" : "another one");
  }
  return "";
}

}  // namespace lockstep::launch
