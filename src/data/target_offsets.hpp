// Numbers to predict that are far from 0, compared with how much they differ: fp32 has too few digits for them as they
// are. They are taken less an offset, by number; whoever shows them to people adds it again.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "lockstep/data_set.hpp"

namespace lockstep::data {

/// Of `values` [rows, width]: each column's lowest number where fp32 would lose digits that matter, else 0.
[[nodiscard]] std::vector<double> target_offsets(std::span<const double> values, std::size_t width);

/// Values less their offsets, rounded once.
[[nodiscard]] std::vector<float> less_offsets(std::span<const double> values, const std::vector<double>& offsets);

/// Those of features that are numbers to predict, one after the other; 0 where there are none.
[[nodiscard]] std::vector<double> offsets_of(const std::vector<Feature>& features, std::size_t numbers);
/// Sets them, where some are not 0.
void set_offsets(std::vector<Feature>& features, const std::vector<double>& offsets);

/// What to say of columns of a training set that have one number only.
[[nodiscard]] std::vector<std::string> constant_warnings(std::span<const double> values,
                                                         const std::vector<std::string>& columns);
/// What to say of columns that fp32 can hardly tell apart.
[[nodiscard]] std::vector<std::string> precision_warnings(std::span<const double> values,
                                                          const std::vector<std::string>& columns,
                                                          const std::vector<double>& offsets);

}  // namespace lockstep::data
