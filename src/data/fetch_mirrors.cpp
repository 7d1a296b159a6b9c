// The list of mirrors: {"mnist": {"mirrors": [URL, ...], "files": [{"name", "bytes", "sha256"}, ...]}, ...}
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "data/fetch.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

using Json = nlohmann::json;

Json parse(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw Error(ExitCode::configuration, fmt::format("{}: the list of mirrors cannot be opened", path));
  try {
    return Json::parse(in);
  } catch (const Json::parse_error& error) {
    throw Error(ExitCode::configuration, fmt::format("{}: not JSON, at byte {}", path, error.byte));
  }
}

FetchFile file_of(const Json& entry) {
  FetchFile file{entry.at("name").get<std::string>(), entry.at("bytes").get<std::uint64_t>(),
                 entry.at("sha256").get<std::string>()};
  const bool plain = !file.name.empty() && file.name.find('/') == std::string::npos && file.name[0] != '.';
  const bool hex = file.sha256.size() == 64 && file.sha256.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!plain) throw Error(ExitCode::configuration, fmt::format("'{}' is no plain file name", file.name));
  if (!hex) {
    throw Error(ExitCode::configuration,
                fmt::format("the sha256 of {} is '{}'; expected 64 digits of 0-9 and a-f", file.name, file.sha256));
  }
  return file;
}

}  // namespace

FetchSet read_mirrors(const std::string& mirrors_file, const std::string& name) {
  const Json list = parse(mirrors_file);
  if (!list.is_object() || !list.contains(name)) {
    std::string known;
    for (const auto& item : list.items()) known += (known.empty() ? "" : ", ") + item.key();
    throw Error(ExitCode::usage, fmt::format("'{}' is no data set of {}; it has {}", name, mirrors_file, known));
  }
  try {
    FetchSet set;
    set.mirrors = list.at(name).at("mirrors").get<std::vector<std::string>>();
    for (const auto& entry : list.at(name).at("files")) set.files.push_back(file_of(entry));
    if (set.mirrors.empty()) throw Error(ExitCode::configuration, "no mirror");
    return set;
  } catch (const Json::exception& error) {
    throw Error(ExitCode::configuration,
                fmt::format("{}: {}: expected mirrors and files with name, bytes and sha256 ({})", mirrors_file, name,
                            error.what()));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}: {}", mirrors_file, name, error.what()));
  }
}

}  // namespace lockstep::data
