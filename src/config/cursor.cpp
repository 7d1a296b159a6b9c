#include "config/cursor.hpp"

#include <fmt/format.h>

namespace lockstep::config {

std::string override_key(const std::string& path) {
  return path.starts_with("job.") ? path.substr(4) : path;
}

Place Session::place(const Mark& mark, const std::string& path) const {
  if (written != nullptr) return written->place_of(path);
  if (!mark.command_line) return {file, mark.line, mark.column, path};
  return {"command line", 0, 0, override_key(path)};
}

void Session::problem(const Mark& mark, const std::string& path, std::string message) {
  problems.push_back({place(mark, path), std::move(message)});
}

Cursor Cursor::item(std::size_t index) const {
  return {node_->items.at(index), fmt::format("{}[{}]", path_, index), *session_};
}

void Cursor::expected(const std::string& what, const std::string& advice) const {
  problem(fmt::format("expected {}, found {}{}", what, describe(*node_), advice));
}

}  // namespace lockstep::config
