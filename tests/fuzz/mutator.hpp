// For parsers that refuse whatever has a wrong checksum: libFuzzer's mutation, and then the checksums set right. Each
// <target>_mutator.cpp defines repair(); mutator.cpp calls it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::fuzz {

/// Makes the checksums of a file that was mutated right; leaves alone what it cannot find its way in.
void repair(std::vector<std::uint8_t>& file);

}  // namespace lockstep::fuzz
