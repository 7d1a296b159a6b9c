// Shared by readers: how much of a set indexing reads, parallel work, bad samples, and what a validation or test set
// takes over from its training set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/open.hpp"
#include "lockstep/data_set.hpp"
#include "lockstep/job.hpp"

namespace lockstep::data {

/// Sets of encoded images up to this size are decoded once when they are indexed.
inline constexpr std::uint64_t kFullCheckBytes = std::uint64_t{64} << 20;

/// Sets up to this size are read completely when they are indexed, and their content is in the digest. For larger ones
/// the digest covers names, sizes, labels and, if records have one length, kSpotChecks spots; the rest is left to
/// content_digest().
inline constexpr std::uint64_t kFullDigestBytes = std::uint64_t{256} << 20;
inline constexpr std::int64_t kSpotChecks = 64;

/// Whether its samples have no labels, since a model is to predict for them. What the user may set is then on the
/// command line.
[[nodiscard]] inline bool is_predicted(const SourceOptions& source) {
  return source.label_column.empty();
}

/// `faults`: "cat/7.jpg: truncated JPEG". Throws Error(data) that names the first few, unless bad samples are to be
/// skipped.
void judge_bad_samples(const SourceOptions& source, const std::vector<std::string>& faults, std::size_t samples);

/// Adds a warning if more than one in a hundred of the samples are skipped.
void warn_of_skipped(std::size_t samples, DataSetInfo& info);

/// "a.tar" or "a.tar and 3 more".
[[nodiscard]] std::string describe(const std::vector<std::string>& paths);

/// The number of `name` in `class_names`; throws Error(data) if the training set has no such class.
[[nodiscard]] std::int32_t class_of(const std::vector<std::string>& class_names, const std::string& name,
                                    const std::string& where);

/// The numbers' names: the training set's if there is one, else `own` in the order of SourceOptions::classes, if these
/// are given. Throws Error(data) that names the difference if they are others.
[[nodiscard]] std::vector<std::string> classes_in_order(const std::vector<std::string>& own,
                                                        const SourceOptions& source, const IndexOptions& options);

/// The number of channels of image feature `name`: its own, or more if the training set has more (null: no training
/// set). Throws Error(data) if the training set has fewer.
[[nodiscard]] std::int64_t channels_like(const DataSetInfo* like, const std::string& name, std::int64_t own,
                                         const std::string& where);

/// A validation or test set has the tokens of the training set (null: there is none): a warning for each setting of
/// `source` that asks for others.
[[nodiscard]] std::vector<std::string> unused_token_settings(const SourceOptions& source, const DataSetInfo* like);

/// Calls body(i) once for each i in 0 ... count - 1, in any order and concurrently, and rethrows one of its errors.
/// threads 0: as many as this process may use, at most 8.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& body);

}  // namespace lockstep::data
