// Splits long transfers between ranks into messages, each with a deadline of its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace lockstep::comm {

inline constexpr std::size_t kMessageBytes = std::size_t{16} << 20;

/// Calls `call` with the bytes of each message in turn; not at all for zero bytes.
template <typename Byte, typename Call>
void in_messages(std::span<Byte> bytes, const Call& call) {
  while (!bytes.empty()) {
    const auto next = bytes.first(std::min(bytes.size(), kMessageBytes));
    call(next);
    bytes = bytes.subspan(next.size());
  }
}

}  // namespace lockstep::comm
