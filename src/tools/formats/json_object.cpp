#include "tools/formats/json_object.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/files.hpp"
#include "core/untrusted.hpp"
#include "lockstep/error.hpp"

namespace lockstep::formats {

std::optional<nlohmann::ordered_json> read_object(const std::filesystem::path& path) {
  using Json = nlohmann::ordered_json;
  if (!std::filesystem::exists(path)) return std::nullopt;
  const auto text = read_whole_file(path.string());
  Json json = text && !nests_too_deep(*text) ? Json::parse(*text, nullptr, false) : Json();
  if (!json.is_object()) throw Error(ExitCode::data, fmt::format("{}: expected a JSON object", path.string()));
  return json;
}

}  // namespace lockstep::formats
