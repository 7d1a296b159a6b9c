// What the pages of `lockstep report` have in common.
#pragma once

#include <string>

namespace lockstep::cli {

/// A figure with its name below; empty if there is no value.
[[nodiscard]] std::string tile(const std::string& value, const std::string& name);

/// A whole page. `about` stands below the title; `body` is HTML.
[[nodiscard]] std::string page_of(const std::string& title, const std::string& about, const std::string& body);

}  // namespace lockstep::cli
