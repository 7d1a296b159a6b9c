// Run under mpirun with a folder: each rank checks the number of messages that it sent before its first step against
// the bound, and rank 0 prints the maximum.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "comm/transport/mpi_session.hpp"
#include "lockstep/error.hpp"
#include "train/start_messages.hpp"

namespace lockstep {
namespace {

int run(const std::string& folder) {
  const auto communicator = comm::make_mpi_communicator();
  try {
    const std::uint64_t mine = messages_before_the_first_step(*communicator, folder, 0);
    std::vector<std::uint64_t> all(static_cast<std::size_t>(communicator->size()));
    communicator->all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)), {"check", 0});
    const auto allowed = allowed_messages(kCollectivesOfAFreshStart, communicator->size());
    const auto most = *std::max_element(all.begin(), all.end());
    if (communicator->rank() == 0) {
      fmt::print("{} ranks: at most {} messages a rank, {} allowed\n", communicator->size(), most, allowed);
    }
    return most > 0 && most <= allowed ? 0 : 1;
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    communicator->abort(static_cast<int>(error.code()));
  }
  return 1;
}

}  // namespace
}  // namespace lockstep

int main(int /*count*/, char** arguments) {
  return lockstep::run(arguments[1]);
}
