#include "data/store/access.hpp"

#include <fmt/format.h>

#include "core/remote_path.hpp"
#include "data/store/profile.hpp"
#include "lockstep/error.hpp"

namespace lockstep::store {

namespace {

std::string either(const std::string& first, const std::string& second) {
  return first.empty() ? second : first;
}

}  // namespace

std::string Access::bucket_url(const std::string& bucket) const {
  return endpoint.empty() ? fmt::format("https://{}.s3.{}.amazonaws.com", bucket, region) : endpoint + "/" + bucket;
}

Access access_from_environment() {
  auto settings = profile();
  Access access;
  access.endpoint = either(variable({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"}), settings["endpoint_url"]);
  while (access.endpoint.ends_with('/')) access.endpoint.pop_back();
  const std::string region = either(variable({"AWS_REGION", "AWS_DEFAULT_REGION"}), settings["region"]);
  if (!region.empty()) access.region = region;
  const bool on_amazon = access.endpoint.empty() || access.endpoint.find(".amazonaws.com") != std::string::npos;
  access.find_key = [region = access.region, on_amazon] { return find_key(region, on_amazon); };
  return access;
}

ObjectLocation parse_location(const std::string& path) {
  constexpr std::size_t kScheme = 5;
  LOCKSTEP_CHECK(is_remote(path), path);
  const std::size_t slash = path.find('/', kScheme);
  ObjectLocation location{path.substr(kScheme, slash - kScheme),
                          slash == std::string::npos ? "" : path.substr(slash + 1)};
  while (location.key.ends_with('/')) location.key.pop_back();
  if (location.bucket.empty()) {
    throw Error(ExitCode::configuration, fmt::format("{}: expected s3://BUCKET/KEY, found no bucket", path));
  }
  return location;
}

}  // namespace lockstep::store
