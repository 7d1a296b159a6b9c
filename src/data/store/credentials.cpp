#include "data/store/credentials.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <pugixml.hpp>
#include <vector>

#include "core/files.hpp"
#include "data/store/http.hpp"
#include "data/store/profile.hpp"
#include "lockstep/error.hpp"

namespace lockstep::store {

namespace {

constexpr std::chrono::minutes kBefore{5};             ///< a key ends
constexpr std::chrono::seconds kBetween{30};           ///< two questions for a new one
constexpr std::chrono::milliseconds kInstance{1'000};  ///< for an answer: on other machines there is none
constexpr const char* kContainerHost = "http://169.254.170.2";

/// "2026-11-29T12:00:00Z"; never ends where it cannot be read.
std::chrono::system_clock::time_point time_of(const std::string& text) {
  std::tm fields{};
  if (strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &fields) == nullptr) return Key().expires;
  return std::chrono::system_clock::from_time_t(timegm(&fields));
}

[[noreturn]] void no_key(const std::string& from, const HttpAnswer& answer) {
  throw Error(
      ExitCode::infrastructure,
      fmt::format("object store: expected a key from {}, found {}", from,
                  answer.problem.empty() ? fmt::format("the answer {}: {}", answer.status, answer.text.substr(0, 200))
                                         : answer.problem));
}

Key key_in_json(const std::string& from, const HttpAnswer& answer) {
  const auto json = nlohmann::json::parse(answer.text, nullptr, false);
  const auto member = [&json](const char* name) { return json.is_object() ? json.value(name, "") : std::string(); };
  Key key{member("AccessKeyId"), member("SecretAccessKey"), member("Token"), time_of(member("Expiration"))};
  if (answer.status != 200 || key.id.empty() || key.secret.empty()) no_key(from, answer);
  return key;
}

std::string trimmed_file(const std::string& path, const char* what) {
  auto text = read_whole_file(path);
  if (!text) {
    throw Error(ExitCode::infrastructure, fmt::format("object store: {} names {}, which cannot be read", what, path));
  }
  while (!text->empty() && std::isspace(static_cast<unsigned char>(text->back())) != 0) text->pop_back();
  return *text;
}

/// AssumeRoleWithWebIdentity of Amazon's Security Token Service, which needs no key itself.
Key key_of_role(const std::string& role, const std::string& token_file, const std::string& region) {
  const std::string token = trimmed_file(token_file, "AWS_WEB_IDENTITY_TOKEN_FILE");
  const std::string session = variable({"AWS_ROLE_SESSION_NAME"}), named = variable({"AWS_ENDPOINT_URL_STS"});
  const std::string url = named.empty() ? fmt::format("https://sts.{}.amazonaws.com/", region) : named;
  const HttpAnswer answer =
      send({.method = "POST",
            .url = url,
            .body = fmt::format("Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn={}"
                                "&RoleSessionName={}&WebIdentityToken={}",
                                percent_encoded(role), percent_encoded(session.empty() ? "lockstep" : session),
                                percent_encoded(token))});
  pugi::xml_document xml;
  xml.load_buffer(answer.text.data(), answer.text.size());
  const auto found =
      xml.child("AssumeRoleWithWebIdentityResponse").child("AssumeRoleWithWebIdentityResult").child("Credentials");
  Key key{found.child_value("AccessKeyId"), found.child_value("SecretAccessKey"), found.child_value("SessionToken"),
          time_of(found.child_value("Expiration"))};
  if (answer.status != 200 || key.id.empty()) no_key(url + " for the role " + role, answer);
  return key;
}

/// Where a key may come from without encryption: this host, and the addresses of Amazon's agents on its link.
bool may_be_asked(const std::string& url) {
  constexpr std::array kPlain = {"http://localhost",      "http://127.",           "http://[::1]",
                                 "http://169.254.170.2:", "http://169.254.170.2/", "http://169.254.170.23/",
                                 "http://[fd00:ec2::23]"};
  const auto begins = [&url](const char* plain) { return url.starts_with(plain); };
  return url.starts_with("https://") || std::any_of(kPlain.begin(), kPlain.end(), begins);
}

Key key_of_container(const std::string& url) {
  if (!may_be_asked(url)) {
    throw Error(ExitCode::configuration,
                fmt::format("AWS_CONTAINER_CREDENTIALS_FULL_URI: expected https, or an address "
                            "of this host, found {}",
                            url));
  }
  std::string token = variable({"AWS_CONTAINER_AUTHORIZATION_TOKEN"});
  const std::string token_file = variable({"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"});
  if (!token_file.empty()) token = trimmed_file(token_file, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
  std::vector<std::string> headers;
  if (!token.empty()) headers.push_back("Authorization: " + token);
  return key_in_json(url, send({.url = url, .headers = headers, .direct = true}));
}

/// No key where there is no such service, or the instance has no role.
Key key_of_instance() {
  if (variable({"AWS_EC2_METADATA_DISABLED"}) == "true") return {};
  const std::string named = variable({"AWS_EC2_METADATA_SERVICE_ENDPOINT"});
  const std::string base = (named.empty() ? "http://169.254.169.254" : named) + "/latest/";
  const HttpAnswer token = send({.method = "PUT",
                                 .url = base + "api/token",
                                 .headers = {"X-aws-ec2-metadata-token-ttl-seconds: 21600", "Content-Length: 0"},
                                 .patience = kInstance,
                                 .direct = true});
  if (token.status != 200) return {};
  const std::vector<std::string> headers = {"X-aws-ec2-metadata-token: " + token.text};
  const std::string roles = base + "meta-data/iam/security-credentials/";
  const HttpAnswer role = send({.url = roles, .headers = headers, .direct = true});
  if (role.status == 404) return {};
  if (role.status != 200) no_key(roles, role);
  const std::string from = roles + role.text.substr(0, role.text.find('\n'));
  return key_in_json(from, send({.url = from, .headers = headers, .direct = true}));
}

Key checked(Key key) {
  if (key.id.empty() == key.secret.empty()) return key;
  throw Error(ExitCode::configuration,
              fmt::format("object store: expected AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, found only {}",
                          key.secret.empty() ? "the first" : "the second"));
}

}  // namespace

Key find_key(const std::string& region, bool on_amazon) {
  Key key{variable({"AWS_ACCESS_KEY_ID"}), variable({"AWS_SECRET_ACCESS_KEY"}), variable({"AWS_SESSION_TOKEN"})};
  if (!key.id.empty() || !key.secret.empty()) return checked(key);
  const std::string role = variable({"AWS_ROLE_ARN"}), token_file = variable({"AWS_WEB_IDENTITY_TOKEN_FILE"});
  if (!role.empty() && !token_file.empty()) return key_of_role(role, token_file, region);
  auto settings = profile();
  key = {settings["aws_access_key_id"], settings["aws_secret_access_key"], settings["aws_session_token"]};
  if (!key.id.empty() || !key.secret.empty()) return checked(key);
  if (!settings["role_arn"].empty() && !settings["web_identity_token_file"].empty()) {
    return key_of_role(settings["role_arn"], settings["web_identity_token_file"], region);
  }
  const std::string relative = variable({"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"});
  const std::string full = variable({"AWS_CONTAINER_CREDENTIALS_FULL_URI"});
  if (!relative.empty() || !full.empty()) return key_of_container(relative.empty() ? full : kContainerHost + relative);
  return on_amazon ? key_of_instance() : Key();
}

Key Credentials::key() {
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::system_clock::now();
  const auto asked = std::chrono::steady_clock::now();
  if (found_ && (now < key_.expires - kBefore || asked < looked_ + kBetween)) return key_;
  try {
    looked_ = asked;
    key_ = find_();
    found_ = true;
  } catch (...) {
    if (!found_ || now >= key_.expires) throw;
  }
  return key_;
}

bool Credentials::renew(const Key& refused) {
  const std::lock_guard lock(mutex_);
  if (key_ != refused) return true;  // another thread has looked
  looked_ = std::chrono::steady_clock::now();
  Key found = find_();
  if (found == key_) return false;
  key_ = std::move(found);
  return true;
}

}  // namespace lockstep::store
