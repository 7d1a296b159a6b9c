#include "data/readers/common.hpp"

#include <fmt/format.h>

#include <sched.h>
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/round_up.hpp"
#include "core/words.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {

std::string describe(const std::vector<std::string>& paths) {
  return paths.empty() ? "no path" : few_of(paths, 1);
}

void judge_bad_samples(const SourceOptions& source, const std::vector<std::string>& faults, std::size_t samples) {
  if (faults.empty() || source.bad_samples == BadWhenIndexed::skip) return;
  const char* const remedy = !is_predicted(source)              ? "say `bad_samples: skip`"
                             : source.kind == SourceKind::table ? "add data.train.table.bad_samples=skip"
                                                                : "add data.train.texts.bad_samples=skip";
  throw Error(ExitCode::data,
              fmt::format("{}: {} of {} samples {} bad: {}. Repair or remove them, or {}", describe(source.paths),
                          faults.size(), samples, faults.size() == 1 ? "is" : "are", few_of(faults, 3, "; "), remedy));
}

void warn_of_skipped(std::size_t samples, DataSetInfo& info) {
  if (info.skipped.size() * 100 <= samples) return;
  info.warnings.push_back(
      fmt::format("{} of {} samples, {:.1f} %, are bad and skipped; look at what is wrong with them",
                  info.skipped.size(), samples, 100 * static_cast<double>(info.skipped.size()) / samples));
}

std::int32_t class_of(const std::vector<std::string>& class_names, const std::string& name, const std::string& where) {
  const auto found = std::find(class_names.begin(), class_names.end(), name);
  if (found == class_names.end()) {
    throw Error(ExitCode::data, fmt::format("{}: class '{}' is not among the {} classes of the training set", where,
                                            name, class_names.size()));
  }
  return found - class_names.begin();
}

namespace {

/// "'cat', 'dog' and 3 more" of those that others lack.
std::string names_without(const std::vector<std::string>& all, const std::vector<std::string>& others) {
  std::vector<std::string> names;
  for (const auto& name : all) {
    if (std::find(others.begin(), others.end(), name) == others.end()) names.push_back("'" + name + "'");
  }
  return few_of(names, 5);
}

}  // namespace

std::vector<std::string> classes_in_order(const std::vector<std::string>& own, const SourceOptions& source,
                                          const IndexOptions& options) {
  const auto& wanted = source.classes;
  const auto& names = options.like != nullptr ? options.like->class_names : own;
  if (wanted.empty() || !source.mask.empty() || wanted == names) return names;  // of a mask: its pixels' classes
  if (names.empty()) {
    throw Error(ExitCode::data, fmt::format("{}: classes: expected samples of a class each, found none; leave it out",
                                            describe(source.paths)));
  }
  const std::string unused = names_without(wanted, names), unknown = names_without(names, wanted);
  if (!unused.empty() || !unknown.empty()) {
    throw Error(ExitCode::data,
                fmt::format("{}: classes: expected the {} names of the data's classes{}{}; name them alike",
                            describe(source.paths), names.size(),
                            unused.empty() ? "" : fmt::format(", the data lack {}", unused),
                            unknown.empty() ? "" : fmt::format(", the list lacks {}", unknown)));
  }
  if (options.like == nullptr) return wanted;
  throw Error(ExitCode::data, fmt::format("{}: classes: expected the order of the training set, {}; leave it out",
                                          describe(source.paths), both_of(names, wanted)));
}

std::int64_t channels_like(const DataSetInfo* like, const std::string& name, std::int64_t own,
                           const std::string& where) {
  if (like == nullptr) return own;
  for (const auto& feature : like->features) {
    if (feature.name != name || feature.kind != Feature::Kind::image) continue;
    const std::int64_t expected = feature.spec.shape.back();
    if (own > expected) {
      throw Error(ExitCode::data,
                  fmt::format("{}: the images are in colour, those of the training set are grey", where));
    }
    return expected;
  }
  return own;
}

std::vector<std::string> unused_token_settings(const SourceOptions& source, const DataSetInfo* like) {
  std::vector<std::string> warnings;
  if (like == nullptr) return warnings;
  const auto compare = [&](const char* setting, const std::string& expected, const std::string& found) {
    if (expected == found) return;
    warnings.push_back(
        fmt::format("{}: expected {}, as in the training set, found {}, which is not used", setting, expected, found));
  };
  if (source.context > 0) {
    compare("context", std::to_string(like->features[0].spec.shape[0]), std::to_string(source.context));
  }
  if (source.tokenizer && source.tokenizer_file.empty()) {
    const std::string_view theirs = !like->tokenizer.empty()   ? "the tokens of a file"
                                    : like->token_text.empty() ? name_of(Tokenizer::bytes)
                                                               : name_of(Tokenizer::characters);
    compare("tokenizer", std::string(theirs), std::string(name_of(*source.tokenizer)));
  }
  if (like->masked.token >= 0 && source.attributes.has("mask_token")) {
    compare("mask_token", std::to_string(like->masked.token), std::to_string(source.attributes.integer("mask_token")));
  }
  return warnings;
}

namespace {

int usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? std::clamp(CPU_COUNT(&set), 1, 8) : 1;
}

}  // namespace

void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& body) {
  constexpr std::size_t kGrain = 64;
  const std::size_t wanted = threads > 0 ? threads : usable_processors();
  const std::size_t used = std::clamp<std::size_t>(divide_up(count, kGrain), 1, wanted);
  std::atomic<std::size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  const auto work = [&] {
    try {
      for (std::size_t begin = 0; (begin = next.fetch_add(kGrain)) < count;) {
        for (std::size_t i = begin; i < std::min(count, begin + kGrain); ++i) body(i);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      next = count;
    }
  };
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < used; ++i) others.emplace_back(work);
  work();
  others.clear();  // joins the threads
  if (failure) std::rethrow_exception(failure);
}

}  // namespace lockstep::data
