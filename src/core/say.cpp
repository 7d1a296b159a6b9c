#include "core/say.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

namespace lockstep {

namespace {

constexpr int kPatience = 5'000;      ///< milliseconds, for a terminal that is stopped, or an unread pipe
constexpr std::size_t kPiece = 4096;  ///< a pipe that can be written to takes as much without waiting

}  // namespace

void say_text(const std::string& text) noexcept {
  for (std::string_view rest = text; !rest.empty();) {
    pollfd writable{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&writable, 1, kPatience) == 0) return;
    const ssize_t count = ::write(STDERR_FILENO, rest.data(), std::min(rest.size(), kPiece));
    if (count < 0 && errno != EINTR && errno != EAGAIN) return;
    if (count > 0) rest.remove_prefix(count);
  }
}

}  // namespace lockstep
