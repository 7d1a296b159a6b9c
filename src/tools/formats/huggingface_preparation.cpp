#include "tools/formats/huggingface_preparation.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

namespace lockstep::formats {

namespace {

using Json = nlohmann::ordered_json;

std::string file_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json height_and_width(const std::vector<std::int64_t>& size) {
  return {{"height", size.front()}, {"width", size.back()}};
}

/// By channel.
Json of_channels(const std::vector<double>& values, std::int64_t channels, double none) {
  Json all = Json::array();
  for (std::int64_t i = 0; i < channels; ++i) {
    all.push_back(values.empty() ? none : values[values.size() == 1 ? 0 : static_cast<std::size_t>(i)]);
  }
  return all;
}

/// Sets what resizes and crops.
void add_steps(const ExportedModel& model, Json& config) {
  const auto& steps = model.prepare;
  const bool resizes = !steps.empty() && steps.front().name == "resize";
  const bool crops = !steps.empty() && steps.back().name == "center_crop";
  config["do_resize"] = false;
  if (steps.size() != static_cast<std::size_t>(resizes) + crops) {
    config["lockstep_prepare"] = Json::parse(exported_facts(model)).at("prepare");
    return;
  }
  if (resizes) {
    const auto size = steps.front().attributes.integers("size");
    config["do_resize"] = true;
    config["size"] = size.size() == 1 ? Json{{"shortest_edge", size[0]}} : height_and_width(size);
    config["resample"] = 2;                                                       // bilinear
    if (size.size() == 1) config["image_processor_type"] = "CLIPImageProcessor";  // which knows a shortest edge
  }
  if (crops) config["crop_size"] = height_and_width(steps.back().attributes.integers("size"));
  if (crops) config["image_processor_type"] = "CLIPImageProcessor";
  config["do_center_crop"] = crops;
}

Json image_processor(const ExportedModel& model, const Shape& image) {
  Json config = {{"image_processor_type", "ViTImageProcessor"},
                 {"size", height_and_width({image[0], image[1]})},
                 {"do_rescale", true},
                 {"rescale_factor", 1.0 / 255},
                 {"do_normalize", !model.mean.empty()},
                 {"image_mean", of_channels(model.mean, image[2], 0)},
                 {"image_std", of_channels(model.stddev, image[2], 1)},
                 {"do_convert_rgb", false}};
  if (image[2] == 3) config["do_convert_rgb"] = true;
  add_steps(model, config);
  return config;
}

/// A word for each character; one that is not known is an error there, too.
Json tokenizer_of_characters(const std::vector<std::string>& characters) {
  Json vocabulary = Json::object();
  for (std::size_t i = 0; i < characters.size(); ++i) vocabulary[characters[i]] = i;
  return {{"version", "1.0"},
          {"added_tokens", Json::array()},
          {"pre_tokenizer",
           {{"type", "Split"}, {"pattern", {{"Regex", "[\\s\\S]"}}}, {"behavior", "Isolated"}, {"invert", false}}},
          {"decoder", {{"type", "Fuse"}}},
          {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", "<unknown>"}}}};
}

/// How byte-level vocabularies write a byte: printable ones of Latin-1 as themselves, others from U+0100 on.
std::string character_of(int byte, int& next) {
  const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  const int code = printable ? byte : next++;
  if (code < 128) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
}

Json tokenizer_of_bytes() {
  Json vocabulary = Json::object();
  const Json level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) vocabulary[character_of(byte, next)] = byte;
  return {{"version", "1.0"},
          {"added_tokens", Json::array()},
          {"pre_tokenizer", level},
          {"decoder", level},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}}}};
}

/// Empty: the text of tokens is not known.
std::string tokenizer_of(const ExportedModel& model) {
  if (!model.tokenizer.empty()) {
    Json given = Json::parse(model.tokenizer);
    if (given.contains("added_tokens")) return model.tokenizer;
    given["added_tokens"] = Json::array();  // transformers asks for it
    return file_text(given);
  }
  if (!model.tokens.empty()) return file_text(tokenizer_of_characters(model.tokens));
  const Json data = Json::parse(model.data, nullptr, false);
  const bool bytes = data.is_object() && data.value("format", "").ends_with(", bytes");
  return bytes ? file_text(tokenizer_of_bytes()) : "";
}

}  // namespace

std::vector<ExportedFile> huggingface_preparation(const ExportedModel& model) {
  if (model.inputs.empty()) return {};
  const Feature::Kind kind = model.inputs.front().feature.kind;
  const Shape& shape = model.graph->at(model.graph->inputs.front()).spec.shape;
  if (kind == Feature::Kind::image) {
    return {{"preprocessor_config.json", file_text(image_processor(model, {shape.begin() + 1, shape.end()}))}};
  }
  const std::string tokenizer = kind == Feature::Kind::tokens ? tokenizer_of(model) : "";
  if (tokenizer.empty()) return {};
  const Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                       {"model_max_length", shape.at(1)},
                       {"clean_up_tokenization_spaces", false}};
  return {{"tokenizer.json", tokenizer}, {"tokenizer_config.json", file_text(config)}};
}

}  // namespace lockstep::formats
