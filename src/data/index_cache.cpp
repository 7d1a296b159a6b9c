#include "data/index_cache.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/cache_directory.hpp"
#include "core/digest.hpp"
#include "core/files.hpp"
#include "data/bytes.hpp"
#include "data/path.hpp"
#include "lockstep/error.hpp"
#include "lockstep/version.hpp"

namespace lockstep::data {
namespace {

/// Must change whenever the form or meaning of a reader's notes changes.
constexpr std::string_view kIndexMagic = "LOCKSTEP-INDEX-6\n";
constexpr std::size_t kDigestLength = 64;

}  // namespace

std::string IndexCache::path_of(const SourceOptions& source) const {
  if (directory_.empty()) return "";
  // All members are bound, so that no new one is forgotten. Which samples are taken, how long they are, and what
  // becomes of bad ones is decided after indexing.
  const auto& [kind, paths, patterns, labels, count, first, pairs, masks, same, triplets, part, tokenizer,
               tokenizer_file, context, text_column, label_column, masked, masked_span, mask, classes, target,
               targets_apart, targets_centred, features, except, categorical, unknown, weight, window, horizon, series,
               time, weights, reader, attributes, bad_samples, place] = source;
  std::vector<std::string> words = {std::string(kIndexMagic),
                                    version(),
                                    std::string(name_of(kind)),
                                    reader,
                                    labels,
                                    std::string(name_of(part)),
                                    tokenizer ? std::string(name_of(*tokenizer)) : "",
                                    text_column,
                                    label_column,
                                    mask,
                                    weight,
                                    fmt::format("{} {}", window, fmt::join(horizon, " ")),
                                    series,
                                    time,
                                    tokenizer_file.empty() ? "" : whole_path(tokenizer_file)};
  for (const auto* list : {&classes, &target, &features, &except, &categorical}) {
    words.push_back(fmt::format("{}", list->size()));
    words.insert(words.end(), list->begin(), list->end());
  }
  for (const auto& [name, value] : attributes.all()) words.push_back(name + " " + to_string(value));
  for (const auto& path : paths) words.push_back(whole_path(path));
  std::string settings;
  for (const auto& word : words) append_text(settings, word);
  return fmt::format("{}/{}{}", directory_, kIndexPrefix, sha256(settings).substr(0, 32));
}

std::optional<IndexNotes> IndexCache::find(const SourceOptions& source) const {
  const std::string path = path_of(source);
  if (path.empty()) return {};
  std::string contents;
  try {
    contents = read_whole_file(path).value_or("");
  } catch (const Error&) {  // as good as none
    return {};
  }
  const std::string_view all(contents);
  if (all.size() < kIndexMagic.size() + kDigestLength || !all.starts_with(kIndexMagic)) return {};
  const auto notes = all.substr(kIndexMagic.size(), all.size() - kIndexMagic.size() - kDigestLength);
  if (sha256(notes) != all.substr(all.size() - kDigestLength)) return {};
  auto found = IndexNotes::read(notes);
  note_use(path);
  return found.are_current() ? std::optional(std::move(found)) : std::nullopt;
}

std::string IndexCache::store(const SourceOptions& source, const IndexNotes& notes) const {
  const std::string path = path_of(source);
  if (path.empty()) return "there is no cache directory";
  if (!notes.can_be_kept()) return "its files are too new";
  const std::string bytes = notes.write();
  std::string problem = try_write_whole_file(path, fmt::format("{}{}{}", kIndexMagic, bytes, sha256(bytes)));
  make_room(directory_, limit_, path);
  return problem;
}

}  // namespace lockstep::data
