// GpuGraphs: a shard's kernels as graphs, so that the host's part of them is a call for each bucket instead of one for
// each kernel: small shards are bound by those.
//
// A graph holds the addresses that its kernels were given. Those of buffers differ from shard to shard, so there is a
// graph for each set of them that turned up (a handful: comm/reduce/accumulation_buffers.hpp uses memory again); when
// any other has moved, all graphs are made anew. What is launched for the first time is launched as it is, which lets
// libraries load what they need.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/reduce/gradient_reducer.hpp"
#include "device/gpu/gpu.hpp"

namespace lockstep::exec {

class GpuGraphs {
 public:
  /// The Gpu outlives it; when it ends, the stream is done.
  GpuGraphs(device::Gpu& gpu, device::Gpu::Stream stream) : gpu_(gpu), stream_(stream) {}

  /// Before a shard's parts: all addresses that its kernels are given, but those of buffers. The stream is done.
  void begin(std::vector<const void*> addresses);

  /// Enqueues a part of the program on the stream, by launch() or as a graph of what launch() enqueues. Errors name the
  /// `step`, and name() where it is a graph.
  template <class Launch, class Name>
  void run(std::size_t part, std::span<const comm::GradientBuffer> buffers, std::uint64_t step, const Launch& launch,
           const Name& name) {
    Recorded& recorded = at(part, buffers);
    if (std::exchange(recorded.seen, true) && recorded.graph == nullptr) {
      recorded.graph = gpu_.capture(stream_, launch);
      recorded.name = name();
    }
    if (recorded.graph == nullptr) return launch();
    gpu_.enter(stream_, step, recorded.name);
    recorded.graph->launch();
  }

 private:
  struct Recorded {
    bool seen = false;
    std::unique_ptr<device::GpuGraph> graph;
    std::string name;
  };
  [[nodiscard]] Recorded& at(std::size_t part, std::span<const comm::GradientBuffer> buffers);

  device::Gpu& gpu_;
  device::Gpu::Stream stream_;
  std::vector<const void*> addresses_;
  std::vector<std::uintptr_t> key_;
  std::map<std::vector<std::uintptr_t>, Recorded> recorded_;  ///< by part and buffers
};

}  // namespace lockstep::exec
