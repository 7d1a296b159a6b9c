// Reading and writing whole files as strings.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lockstep {

/// All bytes of a file, also of a pipe, whose size is not known beforehand; nullopt if it does not exist. Throws Error
/// if it cannot be read. `read_some` is called after each call to the file system.
[[nodiscard]] std::optional<std::string> read_whole_file(const std::string& path,
                                                         const std::function<void()>& read_some = {});

/// A file of /proc or /sys; "" if the kernel does not show it: the process has ended, or is another user's.
[[nodiscard]] std::string read_kernel_file(const std::string& path);

/// Replaces a file as NewFile does, and creates its folder. Throws Error.
void write_whole_file(const std::string& path, std::string_view bytes);

/// The same, for files that are not worth an error: returns its message, or "".
[[nodiscard]] std::string try_write_whole_file(const std::string& path, std::string_view bytes);

}  // namespace lockstep
