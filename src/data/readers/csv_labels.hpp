// What classes the labels of a CSV mean.
#pragma once

#include "data/readers/encoded_images.hpp"

namespace lockstep::data {

/// Classes are numbered from 0, so a number below this is taken for a class.
inline constexpr int kMaxNumberedClasses = 100000;

/// Sets class_names and warnings. Labels that are all numbers are the classes' numbers, from 0 to the largest; a
/// warning names classes without a sample. If any label is a word, classes are the distinct labels, sorted. Numbers
/// with leading zeros are words. A label that is not a number ("nan", as programs write a missing value) makes its
/// sample bad. Throws Error(data), with the place of the first one, where all labels are numbers and one is negative,
/// has a fraction or is too large.
void name_classes(ImageCandidates& candidates);

}  // namespace lockstep::data
