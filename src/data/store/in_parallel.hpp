// Several transfers at once: a connection alone seldom fills a link.
#pragma once

#include <cstddef>
#include <functional>

#include "data/store/client.hpp"

namespace lockstep::store {

/// Calls `transfer` for 0 .. count-1 on up to four threads; it passes its second argument on to the client. `on_bytes`
/// is called on this thread. The first exception, of either, ends all
/// transfers and is thrown.
void in_parallel(std::size_t count, const OnBytes& on_bytes,
                 const std::function<void(std::size_t, const OnBytes&)>& transfer);

}  // namespace lockstep::store
