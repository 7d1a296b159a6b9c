#include "fuzz/mutator.hpp"

#include <algorithm>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed);

/// One mutation in eight is left as it is, so that wrong checksums are tested, too.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, most);
  if (seed % 8 == 0) return size;
  std::vector<std::uint8_t> file(data, data + size);
  lockstep::fuzz::repair(file);
  if (file.size() > most) return size;
  std::copy(file.begin(), file.end(), data);
  return file.size();
}
