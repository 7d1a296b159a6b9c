// ModelSlices: which rank keeps which elements of a model, if the ranks that train it divide its state among them
// (`sharding`, known as ZeRO or fully sharded data parallelism, after Rajbhandari et al., "ZeRO: Memory Optimizations
// Toward Training Trillion Parameter Models", 2020).
//
// The owner of a slice of a parameter's gradient (comm/reduce/gradient_buckets.hpp) has its sum after the
// reduce-scatter. Only the owner keeps the optimizer's state for these elements and updates them; then all ranks get
// the new parameters by an all-gather. On CPUs parameters are in memory once per host: owners write their slices in
// place, and only other hosts get messages. (On GPUs each rank has them all; step/optim/gpu_updater.hpp.) If parameters
// are divided, too, a host has those of other hosts only while it reads them (step/exec/fetched_parameters.hpp), and on
// GPUs a rank those of other ranks (step/exec/gpu_gathers.hpp). Slices are cut at chunks, the units of an update, so no
// bit depends on which rank owns what.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/reduce/gradient_buckets.hpp"
#include "comm/transport/fetched_memory.hpp"
#include "comm/transport/host_memory.hpp"
#include "comm/transport/topology.hpp"
#include "graph/program.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/graph.hpp"
#include "step/exec/fetched_parameters.hpp"
#include "step/exec/parameters.hpp"

namespace lockstep::optim {

class ModelSlices {
 public:
  /// Elements of a parameter, and the rank of the group that owns them.
  using Owned = exec::OwnedExtent;

  struct Options {
    bool keeps_parameters = true;  ///< in host memory that ranks share; false: each rank has them on its GPU
    bool divides_parameters = false;
    std::int64_t unit_bytes = 0;  ///< approximate bytes of the parameters that are fetched together
    int workers = 1;              ///< on this rank
    std::chrono::milliseconds timeout{60'000};
  };
  /// How many units of other hosts' parameters a host keeps at a time.
  [[nodiscard]] static int units_kept(int workers, int local_ranks) { return workers * local_ranks + kUnitsAhead; }
  /// By parameter, ascending, covering all elements: the owners among so many ranks.
  [[nodiscard]] static std::vector<std::vector<Owned>> owned_by(int ranks, const Graph& graph, const Program& program,
                                                                const comm::GradientBuckets& buckets);
  /// By host, and by unit of the parameters: bytes that are other hosts', if parameters are divided.
  [[nodiscard]] static std::vector<std::vector<std::int64_t>> foreign_bytes(const comm::Hosts& hosts,
                                                                            const Graph& graph, const Program& program,
                                                                            const comm::GradientBuckets& buckets,
                                                                            std::int64_t unit_bytes);
  /// Collective over `group`: the ranks that have the model, or this part of it. Group and graph must outlive it.
  ModelSlices(Communicator& group, const Graph& graph, const Program& program, const comm::GradientBuckets& buckets,
              const Options& options);

  /// By parameter, ascending, covering all elements. Frozen parameters have owners, too, which read them first.
  const std::vector<std::vector<Owned>>& owned() const { return owned_; }
  /// The owner of the chunk of a parameter that begins at element `first`.
  int owner(std::size_t parameter, std::int64_t first) const;
  int rank() const { return group_.rank(); }
  /// By parameter: this rank's elements.
  std::vector<std::vector<exec::Extent>> own() const;
  /// Whether hosts, or on GPUs ranks, have others' parameters only while they read them.
  bool divides_parameters() const { return fetched_ != nullptr || !unit_of_.empty(); }
  /// If ranks on GPUs divide parameters: the unit of each, which is gathered as a whole. Else empty.
  const std::vector<int>& unit_of() const { return unit_of_; }
  /// Null if hosts do not divide parameters.
  const exec::FetchedParameters* fetched() const { return fetched_parameters_.get(); }
  /// Bytes that other hosts have fetched of what this rank owns.
  std::uint64_t bytes_fetched_by_others() const { return fetched_ ? fetched_->bytes_sent() : 0; }
  /// The number, among all ranks, of a rank of the group.
  int number_of(int owner) const { return group_.topology().number(owner); }

  /// Makes the block of parameters, in host memory; to be called once. If they are on GPUs, it is this rank's own, and
  /// has its own elements only if they are divided.
  exec::TensorBlock make_parameters() const;
  /// Makes a block for a state of the optimizer, or for gradients: only this rank's elements.
  exec::TensorBlock make_state() const;

  /// Collective, after each rank has written its own elements: returns when this rank may read all of them, or fetch
  /// them.
  void gather_first_values(const exec::TensorBlock& parameters) const;
  /// The same after an update, which changes only trained parameters.
  void gather_updated(const exec::TensorBlock& parameters, std::uint64_t step) const;

  /// Collective. `values`: one number per chunk; `owners`: the rank that has it. Fills in the numbers of other ranks.
  void gather_numbers(std::span<double> values, std::span<const int> owners, std::uint64_t step) const;

 private:
  static constexpr int kUnitsAhead = 2;
  void find_transfers();
  void map_memory(const Program& program, const Options& options);
  /// Elements of the whole block, by owner, in as few runs as possible.
  using Runs = std::vector<std::vector<exec::Extent>>;
  void gather(const exec::TensorBlock& parameters, const Runs& runs, const Operation& operation) const;

  Communicator& group_;
  const Graph& graph_;
  const comm::Hosts hosts_;
  std::chrono::milliseconds timeout_;
  std::vector<std::vector<Owned>> owned_;
  Runs trained_, frozen_;
  std::shared_ptr<comm::HostMemory> memory_;  ///< of the parameters; null if hosts divide them, or GPUs have them
  std::shared_ptr<comm::FetchedMemory> fetched_;
  std::unique_ptr<exec::FetchedParameters> fetched_parameters_;
  std::vector<int> unit_of_;
};

}  // namespace lockstep::optim
