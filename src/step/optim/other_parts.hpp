// OtherParts: what the update of one part of a model (graph/parts.hpp) needs from the ranks that have the other parts.
//
// A weight that several parts use (tied) is kept by each of them. Every part sums the gradients of its own uses over
// the micro-batches; these sums are exchanged, and each part adds all of them in the order of the whole graph, so all
// of them make the same update. For the norm over all parameters, and to know whether all gradients are finite, the
// results of all parts are gathered chunk by chunk, in the order of the whole model's parameters.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "graph/parts.hpp"
#include "graph/program.hpp"
#include "lockstep/communicator.hpp"

namespace lockstep::optim {

/// The parts of a model, and the ranks of each. What it refers to must outlive its users.
struct PlacedParts {
  const std::vector<GraphPart>& parts;
  int own = 0;
  const std::vector<std::vector<int>>& ranks;  ///< by part
  Communicator& communicator;                  ///< of all ranks
  std::chrono::milliseconds timeout{60'000};
};

/// The parameters of the own part, by number and ascending, that are trained and that other parts have, too.
[[nodiscard]] std::vector<std::size_t> shared_weights(const std::vector<GraphPart>& parts, int own);

class OtherParts {
 public:
  /// A use of a shared weight; gradients are added in this order.
  struct Use {
    bool own = true;
    std::size_t number = 0;  ///< own: its slot in the program; else the argument for sum()
  };
  struct SharedWeight {
    std::size_t parameter = 0;  ///< number in the own part
    std::vector<Use> uses;
  };

  /// `program`: of the own part. The arguments must outlive it.
  OtherParts(const PlacedParts& placed, const Program& program);

  const std::vector<SharedWeight>& shared() const { return shared_; }
  /// Sends the sums of own uses, sum_of(slot) in host memory, to the parts that share their weight, and receives
  /// theirs. Collective over the ranks of parts that share a weight.
  void exchange(std::uint64_t step, const std::function<std::span<const float>(std::size_t slot)>& sum_of);
  /// Sent by all calls of exchange(), and by each.
  std::uint64_t bytes_sent() const { return bytes_sent_; }
  std::uint64_t bytes_of_exchange() const;
  /// The received sum of use `number`: as many floats as the weight has.
  const float* sum(std::size_t number) const { return sums_[number].data(); }
  /// By number.
  std::span<const std::vector<float>> sums() const { return sums_; }

  /// Number of chunks of all trained parameters of the whole model.
  std::size_t chunks() const { return chunks_; }
  /// `own`: one number per chunk of the own part's trained parameters, in order. Returns those of the whole model; for
  /// a parameter that several parts have, those of the first part. Collective.
  [[nodiscard]] const std::vector<double>& gather(std::span<const double> own, std::uint64_t step);

 private:
  /// A sum exchanged with a rank of another part.
  struct Message {
    int rank = 0;
    int tag = 0;
    std::size_t number = 0;  ///< index into sums_; or the slot that is sent
  };
  void find_shared();
  /// `uses`: of a parameter of the whole model, each with its node there and its part, in order.
  void add_messages(std::size_t whole, const std::vector<std::pair<std::int32_t, int>>& uses);
  void find_chunks();
  const GraphPart& own() const { return placed_.parts[placed_.own]; }

  const PlacedParts placed_;
  const Program& program_;
  std::vector<SharedWeight> shared_;
  std::vector<std::vector<float>> sums_;
  std::vector<Message> sends_, receives_;
  std::uint64_t bytes_sent_ = 0;
  int next_tag_ = 0;

  /// Chunks of one parameter: their position in the whole model, and in the part that provides their values.
  struct Run {
    int part = 0;
    std::size_t at_whole = 0, at_part = 0, count = 0;
  };
  std::vector<Run> runs_;                 ///< by trained parameter of the whole model
  std::vector<std::size_t> part_chunks_;  ///< by part: number of chunks
  std::size_t chunks_ = 0;
  std::vector<double> whole_;
};

}  // namespace lockstep::optim
