// Elements as the libraries in the place of NVIDIA's read and write them: computed with in fp32, rounded once, to the
// nearest, when they are written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cuda/interpreter/library_kernel.hpp"

namespace lockstep::ptx {

enum class Element : u8 { fp32, bf16, fp16 };

[[nodiscard]] constexpr std::size_t bytes_of(Element element) {
  return element == Element::fp32 ? 4 : 2;
}

[[nodiscard]] std::vector<float> to_floats(Element element, const u8* from, std::size_t count);
void from_floats(Element element, std::span<const float> from, u8* to);
/// With 10 bits of fraction, as tensor cores take factors in fp32.
[[nodiscard]] float in_tf32(float value);

/// What a library's kernel has on the GPU. Once an access went wrong it reads zeros and writes nothing.
class LibraryOperands {
 public:
  /// `who` accesses, for messages.
  LibraryOperands(LibraryMemory& memory, const char* who) : memory_(memory), who_(who) {}

  /// Elements that lie without gaps from `first` on.
  [[nodiscard]] std::vector<float> read(Element element, const void* base, std::int64_t first, std::size_t count);
  void write(Element element, void* base, std::int64_t first, std::span<const float> values);
  /// Writes bytes of a workspace and reads them again, as one thread.
  void write_workspace(void* workspace, std::span<const float> values);
  [[nodiscard]] std::vector<float> read_workspace(const void* workspace, std::size_t count);

 private:
  // Nothing orders reads and writes of a library's kernel: what it writes must not be what it reads.
  static constexpr u32 kReads = 1, kWrites = 2, kWorkspace = 3;

  LibraryMemory& memory_;
  const char* who_;
};

}  // namespace lockstep::ptx
