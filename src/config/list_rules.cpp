#include "config/list_rules.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace lockstep::config {

void ListRule::read(const Cursor& at, void* into) const {
  access_.clear(into);
  if (!at.node().is(YamlNode::Kind::sequence)) {
    if (!options_.single) return at.expected(expected());
    return item_->read(at, access_.append(into));
  }
  if (at.node().items.size() < options_.least)
    return at.problem("expected a list with at least one item, found an empty one");
  for (std::size_t i = 0; i < at.node().items.size(); ++i) item_->read(at.item(i), access_.append(into));
  if (options_.unique) check_unique(at, into);
}

void ListRule::check_unique(const Cursor& at, const void* list) const {
  for (std::size_t i = 0; i < access_.size(list); ++i) {
    const Json item = item_->write(access_.at(list, i));
    for (std::size_t j = 0; j < i; ++j) {
      if (!item.is_null() && item == item_->write(access_.at(list, j))) {
        return at.item(i).problem(fmt::format("expected each item once, found {} again", describe(at.node().items[i])));
      }
    }
  }
}

Json ListRule::write(const void* value) const {
  const std::size_t size = access_.size(value);
  if (size == 0 && options_.least > 0) return {};
  Json list = Json::array();
  for (std::size_t i = 0; i < size; ++i) list.push_back(item_->write(access_.at(value, i)));
  return list;
}

Json ListRule::schema() const {
  const Json item = item_->schema();
  Json list = {{"type", "array"}, {"items", item}};
  if (options_.least > 0) list["minItems"] = options_.least;
  if (options_.unique) list["uniqueItems"] = true;
  if (!options_.single) return list;
  return {{"oneOf", Json::array({item, list})}};
}

std::string ListRule::expected() const {
  if (options_.single) return item_->expected() + ", or a list of such";
  return "a list";
}

const Rule* ListRule::child(const std::string& key) const {
  return key.front() == '[' ? item_.get() : nullptr;
}

Json ForwardRule::write(const void* value) const {
  const void* found = find_(value);
  return found == nullptr ? Json() : inner_->write(found);
}

Json ForwardRule::schema() const {
  return inner_->schema();
}

void MapRule::read(const Cursor& at, void* into) const {
  if (!at.node().is(YamlNode::Kind::mapping)) return at.expected(expected());
  if (at.node().entries.empty()) return at.problem("expected at least one name, found none");
  for (const auto& entry : at.node().entries) item_->read(at.entry(entry), access_.at(into, entry.key));
}

Json MapRule::write(const void* value) const {
  Json json = Json::object();
  access_.each(value, [&](const std::string& name, const void* item) { json[name] = item_->write(item); });
  return json.empty() ? Json() : json;
}

Json MapRule::schema() const {
  return {{"type", "object"}, {"additionalProperties", item_->schema()}, {"minProperties", 1}};
}

}  // namespace lockstep::config
