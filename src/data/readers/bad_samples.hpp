// What to do with samples that indexing found bad: SourceOptions::bad_samples.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/job.hpp"

namespace lockstep::data {

/// `faults`: "cat/7.jpg: truncated JPEG". Throws Error(data) that names the first few, unless they are to be skipped.
void judge_bad_samples(const SourceOptions& source, const std::vector<std::string>& faults, std::size_t samples);

/// "a.tar" or "a.tar and 3 more".
[[nodiscard]] std::string describe(const std::vector<std::string>& paths);

}  // namespace lockstep::data
