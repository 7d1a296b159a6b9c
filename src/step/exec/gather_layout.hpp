// Where gathered parameters lie: if ranks on GPUs divide the parameters among them, units of neighbouring parameters
// are gathered into slots of each GPU's memory before the instructions that read them (step/exec/gpu_gathers.hpp), in
// forward and again in backward. The u-th use of a program has slot u modulo the number of slots: always the same one,
// so that kernels are given the same addresses for each micro-batch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/reduce/gradient_buckets.hpp"
#include "graph/program.hpp"
#include "lockstep/graph.hpp"
#include "step/exec/fetched_parameters.hpp"
#include "step/exec/parameters.hpp"

namespace lockstep::exec {

class GatherLayout {
 public:
  /// Where an area begins in a slot: at a multiple of so many bytes.
  static constexpr std::size_t kAlignment = 256;
  /// How many uses are gathered ahead of the one that is being read.
  static constexpr std::size_t kAhead = 2;

  /// A parameter in its unit's slot: in float32, or the low-precision copy that products read (graph/precision.hpp);
  /// both, if both are read.
  struct Area {
    std::size_t parameter = 0;
    bool low_precision = false;
    std::size_t element_bytes = 0;
    std::size_t offset = 0;  ///< in the slot, in bytes
  };
  /// Bytes of a slot that come from one rank.
  struct Slice {
    int owner = 0;
    std::size_t offset = 0, bytes = 0;  ///< multiples of a float's
  };
  struct Unit {
    std::vector<Area> areas;
    std::vector<Slice> slices;  ///< ascending; adjacent areas with one owner are one, with the gap between them
    std::size_t bytes = 0;
  };

  /// `graph`: as a device computes it. `unit_of`: by parameter. `owned`: by parameter, ascending, all of its elements;
  /// extents begin at even elements. `is_part`: the graph is that of a part of a model, whose workers compute other
  /// micro-batches between a micro-batch's forward and its backward.
  GatherLayout(const Graph& graph, std::vector<int> unit_of, const std::vector<std::vector<OwnedExtent>>& owned,
               bool is_part = false);

  const std::vector<Unit>& units() const { return units_; }
  const Unit& unit(int number) const { return units_[number]; }
  /// How many slots a program needs: for the most units that one of its instructions reads, and for those ahead.
  std::size_t slots(const Program& program) const;
  /// A program's uses if there are so many slots: the u-th may be gathered when that before it in its slot has ended,
  /// which needs no later one.
  std::vector<UnitUse> uses(const Program& program, std::size_t slots) const;
  /// By slot: bytes for these uses.
  [[nodiscard]] static std::vector<std::size_t> slot_bytes(const std::vector<Unit>& units,
                                                           const std::vector<UnitUse>& uses, std::size_t slots);
  /// Bytes of the largest area.
  std::size_t max_area_bytes() const { return max_area_bytes_; }
  /// Bytes on each GPU for a program.
  std::size_t bytes(const Program& program) const;

 private:
  void add_areas(const Graph& graph);
  void add_slices(const std::vector<std::vector<OwnedExtent>>& owned);

  std::vector<int> unit_of_;
  bool is_part_;
  std::vector<Unit> units_;
  std::size_t max_area_bytes_ = 0;
};

/// The gathers of a step, or of an evaluation, come in waves (comm/reduce/micro_batch_assignment.hpp). In a wave each
/// worker of a rank computes at most one micro-batch, and a rank's workers share what is gathered for it. All ranks
/// make the same waves; one that has no micro-batch for a wave takes part in its gathers without computing. Of a whole
/// model, a wave is forward and backward of a micro-batch; of a part, it is one of both, since other micro-batches are
/// computed between them (step/balance/gather_waves.hpp).
struct GatherWave {
  std::size_t first = 0, end = 0;  ///< of the program's uses
  int readers = 0;                 ///< workers of this rank that compute in it
  bool has_backward = true;        ///< in training
};

/// For whole models: so many waves of a rank with `micro_batches` and `workers`.
[[nodiscard]] std::vector<GatherWave> waves_of_whole(std::size_t uses, int waves, int micro_batches, int workers);

/// What is exchanged in a step among the gathers: scattered buckets in each wave with a backward, all others in the
/// last one (comm::GpuAllReduce). By exchange: how many of all gathers of the step precede it, on every rank: all that
/// its wave needs up to there, and those ahead, in the next wave, too, whose slots are free by then. `slots`: how many
/// there are.
[[nodiscard]] std::vector<int> gathers_before_exchanges(const Program& program, const std::vector<UnitUse>& uses,
                                                        const comm::GradientBuckets& buckets,
                                                        std::span<const GatherWave> waves, std::size_t slots);

}  // namespace lockstep::exec
