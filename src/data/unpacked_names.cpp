#include "data/unpacked_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>

#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

constexpr int kMostLinks = 40;                             // as Linux follows them
constexpr std::size_t kMostLinked = std::size_t{1} << 20;  // files that links to folders lead to

std::deque<std::string> components_of(const std::string& path) {
  std::deque<std::string> parts;
  for (const auto& part : std::filesystem::path(path)) {
    if (!part.empty() && part != ".") parts.push_back(part.string());
  }
  return parts;
}

std::string below(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

}  // namespace

void UnpackedNames::put(const std::string& name, Node node) {
  std::string cleaned = clean_name(name);
  if (cleaned.empty()) {
    if (node.kind == Kind::folder) return;  // "./"
    throw Error(ExitCode::data, fmt::format("{}: damaged archive: a file in it has no name", path_));
  }
  const auto found = nodes_.find(cleaned);
  if (found == nodes_.end()) {
    nodes_.emplace(std::move(cleaned), std::move(node));
    return;
  }
  if (found->second.kind != Kind::folder && twice_++ == 0) first_twice_ = cleaned;
  found->second = std::move(node);
}

void UnpackedNames::add_file(const std::string& name, Content content) {
  put(name, {.kind = Kind::file, .content = contents_.size()});
  contents_.push_back(content);
}

void UnpackedNames::add_hard_link(const std::string& name, const std::string& target, std::optional<Content> content) {
  const auto found = nodes_.find(clean_name(target));
  if (found == nodes_.end() && content) return add_file(name, *content);
  if (found == nodes_.end()) {
    throw Error(ExitCode::data, fmt::format("{}: damaged archive: {} is a hard link to {}, which is not before it",
                                            path_, name, target));
  }
  Node same = found->second;
  if (content && same.kind == Kind::file) contents_[same.content] = *content;
  if (clean_name(name) != clean_name(target)) put(name, std::move(same));
}

/// The name without links that a link leads to; nothing: it leads out of the archive, or round in a circle.
std::optional<std::string> UnpackedNames::real_name(const std::string& link) const {
  std::deque<std::string> left = components_of(link);
  std::string at;
  for (int links = 0; !left.empty();) {
    const std::string part = std::move(left.front());
    left.pop_front();
    if (part == "/") return std::nullopt;
    if (part == "..") {
      if (at.empty()) return std::nullopt;
      const auto slash = at.rfind('/');
      at.resize(slash == std::string::npos ? 0 : slash);
      continue;
    }
    const std::string next = below(at, part);
    const auto found = nodes_.find(next);
    if (found == nodes_.end() || found->second.kind != Kind::link) {
      at = next;
      continue;
    }
    if (++links > kMostLinks) return std::nullopt;
    const auto target = components_of(found->second.target);
    left.insert(left.begin(), target.begin(), target.end());
  }
  return at;
}

bool UnpackedNames::is_folder(const std::string& name) const {
  const auto found = nodes_.find(name);
  if (found != nodes_.end()) return found->second.kind == Kind::folder;
  const auto first = nodes_.lower_bound(name + "/");
  return first != nodes_.end() && first->first.starts_with(name + "/");
}

void UnpackedNames::follow(FileTree& tree, const std::string& as, const std::string& name, const Node& link,
                           std::vector<Followed>& way) {
  const auto real = real_name(name);
  const auto found = real ? nodes_.find(*real) : nodes_.end();
  if (found != nodes_.end() && found->second.kind == Kind::file) return emit(tree, as, *real, found->second, way);
  if (!real || (!real->empty() && !is_folder(*real))) {
    return tree.add_fault(as, fmt::format("a link to {}, which is not in the archive", link.target));
  }
  const auto lies_in = [&real](const Followed& step) {
    return real->empty() ? step.from.empty() : real->size() >= step.from.size() && step.link.starts_with(*real + "/");
  };
  way.push_back({name, way.empty() ? "" : *real_name(way.back().link)});
  if (std::any_of(way.begin(), way.end(), lies_in)) {
    tree.add_fault(as, fmt::format("a link to {}, a folder that it lies in", link.target));
  } else {
    tree.add_folder(as);
    const std::string prefix = *real + "/";
    for (auto node = nodes_.lower_bound(prefix); node != nodes_.end() && node->first.starts_with(prefix); ++node) {
      if (++linked_ > kMostLinked) {
        throw Error(ExitCode::data,
                    fmt::format("{}: its links to folders lead to more than {} files", path_, kMostLinked));
      }
      emit(tree, as + node->first.substr(real->size()), node->first, node->second, way);
    }
  }
  way.pop_back();
}

void UnpackedNames::emit(FileTree& tree, const std::string& as, const std::string& name, const Node& node,
                         std::vector<Followed>& way) {
  switch (node.kind) {
    case Kind::file:
      return tree.add_file(as, contents_[node.content].offset, contents_[node.content].size);
    case Kind::folder:
      return tree.add_folder(as);
    case Kind::link:
      return follow(tree, as, name, node, way);
    case Kind::other:
      return tree.add_fault(as, "neither a file nor a folder");
  }
}

void UnpackedNames::hand_over(FileTree& tree) {
  std::vector<Followed> way;
  for (const auto& [name, node] : nodes_) emit(tree, name, name, node, way);
  if (twice_ == 0) return;
  tree.add_warning(
      fmt::format("{}: {} in it twice, such as {}; the last of each is read, as it would be after unpacking", path_,
                  twice_ == 1 ? "1 name is" : fmt::format("{} names are", twice_), first_twice_));
}

}  // namespace lockstep::data
