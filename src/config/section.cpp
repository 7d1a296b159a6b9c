#include "config/section.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "config/advice.hpp"
#include "config/renamed.hpp"
#include "core/nearest.hpp"

namespace lockstep::config {
namespace {

constexpr std::size_t kMaxListed = 14;  // a longer list of known keys is of no help

bool contains(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

}  // namespace

void Scope::problem(const std::string& key, std::string message) const {
  const YamlNode* node = &at_.node();
  for (std::size_t from = 0; from <= key.size();) {
    const std::size_t to = std::min(key.find('.', from), key.size());
    const Entry* entry = node->find(std::string_view(key).substr(from, to - from));
    if (entry == nullptr) break;
    node = &entry->value;
    from = to + 1;
  }
  at_.session().problem(node->mark, at_.path() + "." + key, std::move(message));
}

const SectionRule::Field* SectionRule::find(const std::string& name) const {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const Field& f) { return f.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

std::vector<std::string> SectionRule::alternatives() const {
  std::vector<std::string> names;
  for (const auto& field : fields) {
    if (field.alternative) names.push_back(field.name);
  }
  return names;
}

std::vector<std::string> SectionRule::keys() const {
  std::vector<std::string> names;
  for (const auto& field : fields) names.push_back(field.name);
  return names;
}

/// The alternatives that a bare word can choose.
std::vector<std::string> SectionRule::bare_words() const {
  std::vector<std::string> names;
  for (const auto& field : fields) {
    if (field.required) return {};
    if (field.alternative && field.rule->complete()) names.push_back(field.name);
  }
  return names;
}

bool SectionRule::complete() const {
  if (alternative_required && !alternatives().empty()) return false;
  return std::none_of(fields.begin(), fields.end(), [](const Field& f) { return f.required; });
}

void SectionRule::initialize(void* into) const {
  if (initially) initially(into);
}

void SectionRule::read(const Cursor& at, void* into) const {
  if (set_place) set_place(into, at.place());
  initialize(into);
  if (at.node().is(YamlNode::Kind::mapping)) return read_map(at, into);
  read_bare(at, into);
}

void SectionRule::read_bare(const Cursor& at, void* into) const {
  if (read_word(at, into)) return;
  if (!shorthand.empty() && !at.node().is(YamlNode::Kind::nothing)) {
    const Field& field = *find(shorthand);
    field.rule->read(at, field.member(into));
    // The field's own message names only what the shorthand may be; replace it by one that names all forms.
    auto& problems = at.session().problems;
    if (!at.node().is(YamlNode::Kind::scalar) && !problems.empty() && problems.back().place.path == at.place().path &&
        problems.back().message == fmt::format("expected {}, found {}", field.rule->expected(), describe(at.node()))) {
      problems.pop_back();
      at.expected(expected());
    }
    return;
  }
  std::vector<std::string> known = alternatives();
  for (const auto& word : words) known.push_back(word.name);
  const bool scalar = at.node().is(YamlNode::Kind::scalar);
  if (const Field* field = scalar ? find(at.node().text) : nullptr; field != nullptr && field->alternative) {
    return at.expected(fmt::format("settings, as in {{{}: ...}}", field->name),
                       field->rule->complete() ? "" : "; they have no defaults");
  }
  at.expected(expected(), scalar ? did_you_mean(at.node().text, known) : "");
}

bool SectionRule::read_word(const Cursor& at, void* into) const {
  if (!at.node().is(YamlNode::Kind::scalar)) return false;
  for (const auto& word : words) {
    if (word.name == at.node().text) return word.apply(into), true;
  }
  if (!contains(bare_words(), at.node().text)) return false;
  const Field& field = *find(at.node().text);
  YamlNode settings;  // `sgd` is short for `sgd: {}`
  settings.kind = YamlNode::Kind::mapping;
  settings.mark = at.node().mark;
  field.choose(into);
  field.rule->read(Cursor(settings, at.path() + "." + field.name, at.session()), field.member(into));
  return true;
}

void SectionRule::read_map(const Cursor& at, void* into) const {
  Session& session = at.session();
  std::vector<std::string> bad;
  const Entry* chosen = nullptr;
  for (const auto& entry : at.node().entries) {
    const Field* field = find(entry.key);
    const std::size_t before = session.problems.size();
    if (field == nullptr) {
      report_unknown(at, entry);
      continue;
    }
    const Cursor value = at.entry(entry);
    session.places[value.path()] = value.place();
    if (field->alternative && chosen != nullptr) {
      const auto names = alternatives();
      session.problem(
          entry.mark, value.path(),
          fmt::format("expected only {}, found both '{}' and '{}'; remove one",
                      names.size() > kMaxListed ? "one of such keys" : config::one_of(names), chosen->key, entry.key));
      bad.push_back(chosen->key);
    } else {
      if (field->alternative) chosen = &entry;
      if (field->choose) field->choose(into);
      field->rule->read(value, field->member(into));
    }
    if (session.problems.size() > before) bad.push_back(entry.key);
  }
  report_missing(at);
  run_checks(at, into, bad);
}

void SectionRule::report_unknown(const Cursor& at, const Entry& entry) const {
  const auto known = keys();
  if (const std::string now = new_key(at.path() + "." + entry.key); contains(known, now)) {
    return at.session().problem(entry.mark, at.path() + "." + entry.key,
                                fmt::format("expected '{}', found '{}', its old name", now, entry.key));
  }
  std::string what = "no key: there are no settings here";
  if (!known.empty()) {
    what = known.size() > kMaxListed ? "a known key" : fmt::format("the key {}", config::or_list(known));
  }
  at.session().problem(entry.mark, at.path() + "." + entry.key,
                       fmt::format("expected {}, found '{}'{}", what, entry.key, advice_for_key(*this, at, entry.key)));
}

/// Whether an unknown key is clearly meant as one of `names`, or as a key inside one of them; then no missing key is
/// reported.
bool SectionRule::is_misspelt(const Cursor& at, const std::vector<std::string>& names) const {
  const auto meant = [&](const Entry& entry) {
    return find(entry.key) == nullptr &&
           (contains(names, nearest(entry.key, keys())) || contains(names, new_key(at.path() + "." + entry.key)) ||
            std::any_of(names.begin(), names.end(),
                        [&](const auto& name) { return find(name)->rule->child(entry.key) != nullptr; }));
  };
  const YamlNode& node = at.node();
  return std::any_of(node.entries.begin(), node.entries.end(), meant);
}

void SectionRule::report_missing(const Cursor& at) const {
  const YamlNode& node = at.node();
  for (const auto& field : fields) {
    if (!field.required || node.find(field.name) != nullptr || is_misspelt(at, {field.name})) continue;
    at.session().problem(node.mark, at.path() + "." + field.name,
                         fmt::format("expected {}, found nothing: this key is required", field.rule->expected()));
  }
  const auto names = alternatives();
  if (!alternative_required || names.empty() || is_misspelt(at, names)) return;
  if (std::any_of(names.begin(), names.end(), [&](const auto& name) { return node.find(name) != nullptr; })) return;
  if (names.size() > (noun.empty() ? kMaxListed : 4)) {
    return at.problem(fmt::format("expected {}, found a map without such a key", expected()));
  }
  at.problem(fmt::format("expected the key {}, found none of them", fmt::join(names, " or ")));
}

void SectionRule::run_checks(const Cursor& at, const void* value, const std::vector<std::string>& bad) const {
  for (const auto& check : checks) {
    const bool sound =
        std::none_of(check.keys.begin(), check.keys.end(), [&](const auto& key) { return contains(bad, key); });
    if (sound) check.run(value, Scope(at));
  }
}

Json SectionRule::write(const void* value) const {
  for (const auto& word : words) {
    if (word.holds(value)) return word.name;
  }
  Json json = Json::object();
  for (const auto& field : fields) {
    if (field.chosen && !field.chosen(value)) continue;
    Json written = field.rule->write(field.member(const_cast<void*>(value)));
    if (!written.is_null()) json[field.name] = std::move(written);
  }
  return json;
}

Json SectionRule::map_schema() const {
  const auto example = make();
  initialize(example.get());
  Json map = {{"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
  Json required = Json::array(), one_each = Json::array();
  for (const auto& field : fields) {
    Json property = field.rule->schema();
    if (!field.doc.empty()) property["description"] = field.doc;
    const bool written = !field.required && !field.alternative && (!field.chosen || field.chosen(example.get()));
    if (const Json default_value = written ? field.rule->write(field.member(example.get())) : Json();
        !default_value.is_null()) {
      property["default"] = default_value;
    }
    map["properties"][field.name] = std::move(property);
    if (field.required) required.push_back(field.name);
    if (field.alternative) one_each.push_back(Json{{"required", Json::array({field.name})}});
  }
  if (!required.empty()) map["required"] = required;
  if (one_each.empty()) return map;
  if (!alternative_required) one_each.push_back(Json{{"not", {{"anyOf", Json(one_each)}}}});
  map["oneOf"] = one_each;
  return map;
}

Json SectionRule::schema() const {
  Json forms = Json::array();
  std::vector<std::string> known = bare_words();
  for (const auto& word : words) known.push_back(word.name);
  if (!known.empty()) forms.push_back(Json{{"enum", known}});
  if (!shorthand.empty()) forms.push_back(find(shorthand)->rule->schema());
  if (forms.empty()) return map_schema();
  // a word may also be valid text for the shorthand
  const char* kind = known.empty() || shorthand.empty() ? "oneOf" : "anyOf";
  forms.push_back(map_schema());
  return {{kind, forms}};
}

std::string SectionRule::expected() const {
  if (!noun.empty()) return noun;
  std::vector<std::string> forms;
  for (const auto& word : words) forms.push_back("'" + word.name + "'");
  if (!shorthand.empty()) forms.push_back(find(shorthand)->rule->expected());
  const auto names = alternatives();
  forms.push_back(names.empty() || names.size() > kMaxListed ? "a map" : config::one_of(names));
  return fmt::format("{}", fmt::join(forms, " or "));
}

const Rule* SectionRule::child(const std::string& key) const {
  const Field* field = find(key);
  return field == nullptr ? nullptr : field->rule.get();
}

void SectionRule::make_room(YamlNode& node, const std::string& key) const {
  if (!node.is(YamlNode::Kind::mapping)) {
    YamlNode old = std::move(node);
    node = YamlNode{};
    node.kind = YamlNode::Kind::mapping;
    node.mark = old.mark;
    const bool word = std::any_of(words.begin(), words.end(), [&](const Word& w) { return w.name == old.text; });
    if (old.is(YamlNode::Kind::scalar) && contains(alternatives(), old.text)) {
      YamlNode empty;
      empty.kind = YamlNode::Kind::mapping;
      empty.mark = old.mark;
      node.entries.push_back({old.text, old.mark, std::move(empty)});
    } else if (!shorthand.empty() && !word && !old.is(YamlNode::Kind::nothing)) {
      const Mark mark = old.mark;
      node.entries.push_back({shorthand, mark, std::move(old)});
    }
  }
  const auto names = alternatives();
  if (!contains(names, key)) return;
  std::erase_if(node.entries, [&](const Entry& entry) { return entry.key != key && contains(names, entry.key); });
}

}  // namespace lockstep::config
