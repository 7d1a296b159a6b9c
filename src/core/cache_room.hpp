// Room in the cache of this host: one limit for all that it holds, indexes, unpacked copies and parts of objects.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace lockstep {

/// What the disk of a folder has; throws std::filesystem::filesystem_error.
using DiskSpace = std::function<std::filesystem::space_info(const std::string& folder)>;

/// Parts of objects, in the cache.
inline constexpr const char* kObjectsFolder = "objects";
/// What the names of other entries begin with; all else that lies in the cache's folder is not touched.
inline constexpr const char* kIndexPrefix = "index-";
inline constexpr const char* kUnpackedPrefix = "unpacked-";

/// Removes what was used longest ago, until the cache has no more than `limit` bytes (0: as many as there are) and its
/// disk a twentieth of its space free. Call it when `added` was added, which stays. Never throws for the file system's
/// sake.
void make_room(
    const std::string& cache, std::uint64_t limit, const std::string& added,
    const DiskSpace& space = [](const std::string& of) { return std::filesystem::space(of); });

/// An entry was used just now.
void note_use(const std::string& entry);

}  // namespace lockstep
