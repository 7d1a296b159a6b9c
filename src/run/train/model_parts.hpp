// ModelParts: how a run's model is divided between its ranks (`job.parallel`), as seen by one rank. With one part,
// every rank has the whole model, and the rest is unused.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/reduce/micro_batch_assignment.hpp"
#include "comm/transport/group.hpp"
#include "comm/transport/pulse.hpp"
#include "graph/parts.hpp"
#include "lockstep/communicator.hpp"
#include "lockstep/events.hpp"
#include "lockstep/job.hpp"
#include "run/checkpoint/whole_model.hpp"
#include "step/balance/pipeline.hpp"
#include "step/exec/executor.hpp"
#include "step/exec/part_links.hpp"

namespace lockstep::train {

class ModelParts {
 public:
  /// Every rank makes the same parts. `speeds`: by rank, in any unit; the same on all ranks. Throws
  /// Error(configuration) if the model cannot be cut as the job says.
  ModelParts(const Graph& graph, const JobFile& job, const exec::Device& device, Communicator& ranks, bool lowered,
             std::vector<double> speeds);

  bool is_cut() const { return parts_.size() > 1; }
  int count() const { return ranks_.size(); }
  /// The number of this rank's part.
  int own() const { return own_; }
  /// By part; each rank is in exactly one of them.
  const std::vector<std::vector<int>>& ranks() const { return ranks_; }
  /// Selects the values of this part's ranks, in their order, from the values of all ranks.
  template <class T>
  std::vector<T> of_part(std::size_t part, const std::vector<T>& by_rank) const {
    std::vector<T> values;
    for (const int rank : ranks_[part]) values.push_back(by_rank[rank]);
    return values;
  }
  /// Writes the values of this part's ranks, in their order, into the values of all ranks.
  template <class T>
  void put_part(std::size_t part, const std::vector<T>& values, std::vector<T>& by_rank) const {
    for (std::size_t i = 0; i < values.size(); ++i) by_rank[ranks_[part][i]] = values[i];
  }
  /// The part that computes losses and metrics.
  int of_loss() const { return of_loss_; }
  /// The ranks that have this rank's part; all, if there is only one part.
  Communicator& group() const { return group_ ? *group_ : communicator_; }
  /// What this rank computes: its part, or the whole graph.
  const Graph& graph() const { return is_cut() ? part(own_).graph : whole_; }
  const GraphPart& part(int number) const { return parts_[number]; }
  /// Of the ranks that have parts; null if the model is not cut.
  comm::Pulse* pulse() const { return pulse_.get(); }
  /// Where the model is cut.
  const exec::PartOfModel& of_model() const { return *of_model_; }
  const std::vector<GraphPart>& parts() const { return parts_; }

  /// All of the model's tensors, and the ranks that have each.
  checkpoint::WholeModel whole() const { return checkpoint::whole_of(whole_, parts_, ranks_); }
  /// An event for each part; none if the model is not cut.
  std::vector<events::Part> events() const;

  /// The order in which this rank's workers compute the micro-batches of a step, or of an evaluation (`training`:
  /// backward, too). `assignments`: by part; `workers`: by rank. Every rank computes the same order for all ranks.
  exec::PartSchedule schedule(std::span<const comm::MicroBatchAssignment> assignments, std::span<const int> workers,
                              bool training) const;

 private:
  exec::MessageNumbers numbers(const balance::PipelineSetup& setup, const exec::RankOfMicroBatch& rank_of_micro_batch,
                               std::span<const balance::Task> order) const;

  const Graph& whole_;
  Communicator& communicator_;
  std::vector<double> speeds_;            ///< by rank
  std::vector<std::vector<int>> ranks_;   ///< by part
  std::vector<GraphPart> parts_;          ///< empty: the model is not cut
  std::vector<balance::PartCost> costs_;  ///< by part
  int own_ = 0, of_loss_ = 0;
  std::unique_ptr<comm::GroupCommunicator> group_;
  std::unique_ptr<comm::Pulse> pulse_;
  std::optional<exec::PartOfModel> of_model_;
};

}  // namespace lockstep::train
