// Lines for people, on stderr. Nothing is thrown where they cannot be written (a full disk, a closed terminal): a
// program that cannot report an error still ends with its exit code.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace lockstep {

void say_text(const std::string& text) noexcept;

template <class... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  say_text(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace lockstep
