// JSON files of a folder that transformers has saved.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>

namespace lockstep::formats {

/// A file's object; none if there is no file. Throws Error(data) if it holds something else.
[[nodiscard]] std::optional<nlohmann::ordered_json> read_object(const std::filesystem::path& path);

}  // namespace lockstep::formats
