#include "data/tokenizer/tokenizer_json.hpp"

#include <limits>
#include <string_view>

namespace lockstep::data {
namespace {

using Json = CheckedObject::Json;

/// Takes the two large parts as they come and builds the tree of the rest. Every function returns false, which ends the
/// parsing, for a large part of another form.
class LargeParts : public nlohmann::json_sax<Json> {
 public:
  explicit LargeParts(TokenizerJson& into) : into_(into) {}
  bool is_other_form() const { return other_form_; }

  bool null() override { return value(Json()); }
  bool boolean(bool is) override { return value(Json(is)); }
  bool number_integer(number_integer_t number) override { return value(Json(number)); }
  bool number_unsigned(number_unsigned_t number) override {
    if (part_ != Part::vocabulary) return value(Json(number));
    if (number > std::numeric_limits<std::int32_t>::max()) return refuse();
    into_.vocabulary->emplace_back(std::move(key_), static_cast<std::int64_t>(number));
    return true;
  }
  bool number_float(number_float_t number, const string_t& /*text*/) override { return value(Json(number)); }
  bool binary(binary_t& /*bytes*/) override { return refuse(); }

  bool string(string_t& text) override {
    if (part_ == Part::pair && pair_size_ < 2) {
      if (pair_size_++ == 0) {
        left_ = text;
      } else {
        into_.merges->add(left_, text);
      }
      return true;
    }
    if (part_ != Part::merges) return value(Json(std::move(text)));
    const std::size_t space = text.find(' ');
    if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) return refuse();
    into_.merges->add(std::string_view(text).substr(0, space), std::string_view(text).substr(space + 1));
    return true;
  }

  bool start_object(std::size_t /*elements*/) override {
    if (part_ != Part::none) return refuse();
    if (is_in_model() && key_ == "vocab") {
      if (into_.vocabulary) return refuse();
      into_.vocabulary.emplace();
      part_ = Part::vocabulary;
    }
    open(Json::object());
    return true;
  }
  bool key(string_t& name) override {
    key_ = std::move(name);
    if (part_ == Part::none && open_.size() == 1) in_model_ = key_ == "model";
    return true;
  }
  bool end_object() override { return close(); }

  bool start_array(std::size_t /*elements*/) override {
    if (part_ == Part::merges) {
      part_ = Part::pair;
      pair_size_ = 0;
      return true;
    }
    if (part_ != Part::none) return refuse();
    if (is_in_model() && key_ == "merges") {
      if (into_.merges) return refuse();
      into_.merges.emplace();
      part_ = Part::merges;
    }
    open(Json::array());
    return true;
  }
  bool end_array() override {
    if (part_ != Part::pair) return close();
    part_ = Part::merges;
    return pair_size_ == 2 || refuse();
  }

  bool parse_error(std::size_t /*at*/, const std::string& /*token*/, const nlohmann::detail::exception&) override {
    return refuse();  // the tree's parser says what is wrong
  }

 private:
  enum class Part : std::uint8_t { none, vocabulary, merges, pair };

  bool refuse() {
    other_form_ = true;
    return false;
  }
  bool is_in_model() const { return in_model_ && open_.size() == 2 && open_.back()->is_object(); }

  Json& add(Json&& value) {
    if (open_.empty()) return into_.tree = std::move(value);
    Json& parent = *open_.back();
    if (parent.is_object()) return parent[key_] = std::move(value);
    parent.push_back(std::move(value));
    return parent.back();
  }
  bool value(Json&& value) {
    if (part_ != Part::none) return refuse();
    add(std::move(value));
    return true;
  }
  void open(Json&& value) { open_.push_back(&add(std::move(value))); }
  bool close() {
    part_ = Part::none;
    open_.pop_back();
    return true;
  }

  TokenizerJson& into_;
  std::vector<Json*> open_;  ///< objects and lists around the next value; a parent does not grow while a child is open
  std::string key_, left_;
  std::size_t pair_size_ = 0;
  Part part_ = Part::none;
  bool in_model_ = false, other_form_ = false;
};

}  // namespace

TokenizerJson parse_tokenizer_json(const std::string& text) {
  TokenizerJson json;
  LargeParts parts(json);
  if (Json::sax_parse(text, &parts) && !parts.is_other_form()) return json;
  return {std::nullopt, std::nullopt, Json::parse(text)};
}

}  // namespace lockstep::data
