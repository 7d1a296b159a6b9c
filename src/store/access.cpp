#include "store/access.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <initializer_list>
#include <map>
#include <sstream>

#include "core/whole_file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::store {

namespace {

std::string variable(std::initializer_list<const char*> names) {
  for (const char* const name : names) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return "";
}

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

/// The settings of one section of an INI file; none if there is no such file. Indented lines belong to a setting of
/// another service and are skipped.
std::map<std::string, std::string> section_of(const std::string& path, const std::string& section) {
  std::map<std::string, std::string> settings;
  std::istringstream lines(read_whole_file(path).value_or(""));
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    const bool indented = line.starts_with(' ') || line.starts_with('\t');
    line = trimmed(line);
    if (line.starts_with('[')) inside = trimmed(line.substr(1, line.find(']') - 1)) == section;
    const auto equals = line.find('=');
    if (!inside || indented || line.starts_with('#') || equals == std::string::npos) continue;
    settings[trimmed(line.substr(0, equals))] = trimmed(line.substr(equals + 1));
  }
  return settings;
}

std::string either(const std::string& first, const std::string& second) {
  return first.empty() ? second : first;
}

}  // namespace

std::string Access::bucket_url(const std::string& bucket) const {
  return endpoint.empty() ? fmt::format("https://{}.s3.{}.amazonaws.com", bucket, region) : endpoint + "/" + bucket;
}

Access access_from_environment() {
  const std::string folder = variable({"HOME"}) + "/.aws/", profile = either(variable({"AWS_PROFILE"}), "default");
  auto keys = section_of(either(variable({"AWS_SHARED_CREDENTIALS_FILE"}), folder + "credentials"), profile);
  auto settings = section_of(either(variable({"AWS_CONFIG_FILE"}), folder + "config"),
                             profile == "default" ? profile : "profile " + profile);
  Access access;
  access.endpoint = either(variable({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}), settings["endpoint_url"]);
  while (access.endpoint.ends_with('/')) access.endpoint.pop_back();
  const std::string region = either(variable({"AWS_REGION", "AWS_DEFAULT_REGION"}), settings["region"]);
  if (!region.empty()) access.region = region;
  access.key_id = variable({"AWS_ACCESS_KEY_ID"});
  access.secret = variable({"AWS_SECRET_ACCESS_KEY"});
  access.session_token = variable({"AWS_SESSION_TOKEN"});
  if (access.key_id.empty() && access.secret.empty()) {
    access.key_id = keys["aws_access_key_id"];
    access.secret = keys["aws_secret_access_key"];
    access.session_token = keys["aws_session_token"];
  }
  if (access.key_id.empty() != access.secret.empty()) {
    throw Error(ExitCode::configuration,
                fmt::format("object store: expected AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, found only {}",
                            access.secret.empty() ? "the first" : "the second"));
  }
  return access;
}

}  // namespace lockstep::store
