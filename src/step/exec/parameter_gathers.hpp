// ParameterGathers: what an executor needs of gathers of parameters that ranks divide, if each has a device with memory
// of its own (step/exec/gpu_gathers.hpp).
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "graph/program.hpp"
#include "step/exec/gather_layout.hpp"
#include "step/exec/parameters.hpp"

namespace lockstep::exec {

class ParameterGathers {
 public:
  ParameterGathers() = default;
  ParameterGathers(const ParameterGathers&) = delete;
  ParameterGathers& operator=(const ParameterGathers&) = delete;
  virtual ~ParameterGathers() = default;

  /// Makes room for a program, which `workers` will run. Returns its uses, the same on all ranks. Call between rounds.
  [[nodiscard]] virtual std::vector<UnitUse> prepare(const Program& program, int workers) = 0;

  /// The gathers of a step, or of an evaluation.
  struct Round {
    const std::vector<UnitUse>* uses = nullptr;  ///< of prepare(); must live until the round is over
    std::vector<GatherWave> waves;
    int workers = 1;                          ///< of this rank
    const std::atomic<bool>* stop = nullptr;  ///< becomes true if a worker of this rank has failed
  };
  /// Slots of each GPU's memory, for all programs that have been prepared.
  virtual std::size_t slots() const = 0;
  /// `before`: gathers_before_exchanges(); empty: no gradients are reduced meanwhile, and end() follows.
  virtual void begin(Round round, std::vector<int> before) = 0;
  /// Collective: returns when all gathers of the round are done.
  virtual void end() = 0;

  /// A view in which every parameter is some zeros, to measure the time of a micro-batch. It owns them.
  virtual std::shared_ptr<const ModelView> trial(const ModelView& model) const = 0;
};

}  // namespace lockstep::exec
