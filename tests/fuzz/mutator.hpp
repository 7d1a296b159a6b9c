// For parsers that refuse input with a wrong checksum: libFuzzer's mutation, after which the checksums are corrected.
// Each <target>_mutator.cpp defines repair(); mutator.cpp calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::fuzz {

/// Corrects the checksums of a mutated file; leaves it alone where its structure is broken.
void repair(std::vector<std::uint8_t>& file);

}  // namespace lockstep::fuzz
