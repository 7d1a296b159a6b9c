// What the libraries in the place of cuBLASLt and cuDNN are told to propose:
//
//   INTERPRETED_LIBRARIES_DISAGREE  sizes, with commas: for products with such a side, and for convolutions of as many
//                                   images, ranks other than 0 are proposed the same algorithms in another order, as if
//                                   their libraries' heuristics differed
//   INTERPRETED_LIBRARIES_LACK      words, with commas: what they have no algorithm for, as on older GPUs
#pragma once

#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>

namespace lockstep::ptx {

[[nodiscard]] inline bool is_among(const char* variable, const std::string& word) {
  const char* const text = std::getenv(variable);
  return text != nullptr && ("," + std::string(text) + ",").find("," + word + ",") != std::string::npos;
}

[[nodiscard]] inline bool proposes_in_another_order(std::initializer_list<std::int64_t> sizes) {
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank == nullptr || std::string_view(rank) == "0") return false;
  for (const std::int64_t size : sizes) {
    if (is_among("INTERPRETED_LIBRARIES_DISAGREE", std::to_string(size))) return true;
  }
  return false;
}

[[nodiscard]] inline bool library_lacks(const std::string& word) {
  return is_among("INTERPRETED_LIBRARIES_LACK", word);
}

}  // namespace lockstep::ptx
