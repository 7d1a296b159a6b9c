// The messages of a stand-in module. With STAND_IN_HANGS=rank:step those of a rank hang silently from a step on, with
// STAND_IN_FAILS=rank:step the rank notices it; with STAND_IN_REFUSES=rank they do not start on that rank.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "comm/transport/agreement.hpp"
#include "cuda/faulty_transport.hpp"
#include "cuda/stand_in_gpu.hpp"

namespace lockstep {

/// Null if this variable requests no fault for this rank.
inline std::shared_ptr<comm::TransportFault> stand_in_fault(const char* variable, int rank) {
  const char* given = std::getenv(variable);
  int of_rank = 0;
  unsigned step = 0;
  if (given == nullptr || std::sscanf(given, "%d:%u", &of_rank, &step) != 2 || of_rank != rank) return nullptr;
  auto fault = std::make_shared<comm::TransportFault>();
  fault->step = step;
  return fault;
}

/// Like NCCL: if a rank fails, the others wait for it, and would do so forever.
inline void start_stand_in(Communicator& ranks, const device::GpuPlace& place, std::chrono::milliseconds timeout) {
  const char* refuses = std::getenv("STAND_IN_REFUSES");
  const auto verdict = [&]() -> std::optional<std::string> {
    if (refuses == nullptr) return "";
    if (std::atoi(refuses) == ranks.rank()) return place.text() + ": messages refuse to start";
    return std::nullopt;
  };
  const auto failure = comm::agree(ranks, verdict, {"the start of messages", 0, timeout}, std::chrono::seconds(5));
  if (!failure) return;
  throw Error(ExitCode::infrastructure, fmt::format("rank {} has failed: {}", failure->rank, failure->what));
}

inline std::unique_ptr<comm::GpuTransport> stand_in_messages(Communicator& ranks, device::Gpu& gpu,
                                                             const device::GpuPlace& place,
                                                             std::chrono::milliseconds timeout) {
  start_stand_in(ranks, place, timeout);
  auto transport = std::make_unique<comm::HostTransport>(ranks, timeout, stand_in_touches(gpu));
  auto fault = stand_in_fault("STAND_IN_HANGS", ranks.rank());
  if (!fault) {
    fault = stand_in_fault("STAND_IN_FAILS", ranks.rank());
    if (!fault) return transport;
    fault->found = fmt::format("{}: the messages of step {} failed", place.text(), fault->step);
  }
  using Faulty = comm::FaultyTransport<StandInGpu>;
  return std::make_unique<Faulty>(std::move(transport), dynamic_cast<StandInGpu&>(gpu), std::move(fault));
}

}  // namespace lockstep
