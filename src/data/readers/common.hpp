// What readers have in common: bad samples, and what a validation or test set takes over from its training set.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/open.hpp"
#include "lockstep/data_set.hpp"
#include "lockstep/job.hpp"

namespace lockstep::data {

/// `faults`: "cat/7.jpg: truncated JPEG". Throws Error(data) that names the first few, unless they are to be skipped.
void judge_bad_samples(const SourceOptions& source, const std::vector<std::string>& faults, std::size_t samples);

/// "a.tar" or "a.tar and 3 more".
[[nodiscard]] std::string describe(const std::vector<std::string>& paths);

/// Number of `name` in `class_names`; throws Error(data) where the training set has no such class.
[[nodiscard]] std::int32_t class_of(const std::vector<std::string>& class_names, const std::string& name,
                                    const std::string& where);

/// Channels that the image feature `name` gets: its own, or more where the training set has more (null: none).
/// Throws Error(data) where the training set has fewer.
[[nodiscard]] std::int64_t channels_like(const DataSetInfo* like, const std::string& name, std::int64_t own,
                                         const std::string& where);

/// Whether a folder or an archive stands for its files for testing: SourceOptions::part.
[[nodiscard]] bool is_test_part(const SourceOptions& source, const IndexOptions& options);

}  // namespace lockstep::data
