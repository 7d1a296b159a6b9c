// From the files of a command line to samples: one image for each image feature.
#pragma once

#include <string>
#include <vector>

namespace lockstep::cli {

/// Files of a sample, in the order of the features.
using SampleFiles = std::vector<std::string>;

/// Plain files are taken as they come, as many for a sample as there are `features`. A .csv file has a header with a
/// column for each feature and names the files of one sample in each row, relative to its own folder; other columns
/// (a label) are left alone. Throws Error(usage) for a number of files that makes no whole samples, Error(data) for a
/// CSV that lacks a column.
[[nodiscard]] std::vector<SampleFiles> sample_files(const std::vector<std::string>& files,
                                                    const std::vector<std::string>& features);

}  // namespace lockstep::cli
