// Training: one run on one rank, from the first parameter to the last checkpoint. lockstep/trainer.hpp calls it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/exchange.hpp"
#include "core/spans.hpp"
#include "data/loader.hpp"
#include "exec/executor.hpp"
#include "lockstep/trainer.hpp"
#include "train/checkpoint.hpp"
#include "train/evaluation.hpp"
#include "train/loader_source.hpp"
#include "train/prepared_data.hpp"
#include "train/run_directory.hpp"
#include "train/schedule.hpp"
#include "train/signals.hpp"
#include "train/updater.hpp"

namespace lockstep::train {

class Training {
 public:
  Training(const Job& job, Communicator& communicator, const Registries& registries, const TrainerOptions& options,
           const DataSets& own);
  TrainResult run();

 private:
  struct StepSums {
    double loss = 0, count = 0;
    std::vector<std::pair<double, double>> metrics;
    bool stop_asked = false;
  };

  void check_start();
  void resume();
  void initialize_from_file();
  void make_loader();
  void step();
  StepSums exchange_scalars(const std::vector<exec::ShardScalars>& results);
  void after_step(const StepSums& sums);
  void evaluate();
  void note_best();
  void write(bool best);
  [[nodiscard]] bool stop_asked() const;
  [[nodiscard]] bool due(const Span& every) const;
  [[nodiscard]] bool is_better(double value) const;
  [[nodiscard]] const std::string& watched_metric() const;
  [[nodiscard]] comm::Assignment assignment() const;
  void emit(const std::string& name, const telemetry::Record& record) const;
  void emit_start() const;
  void emit_step(const StepSums& sums);
  void emit_end(TrainResult& result);
  [[nodiscard]] bool leads() const { return communicator_.rank() == 0; }
  [[nodiscard]] std::chrono::milliseconds timeout() const;

  const Job& job_;
  Communicator& communicator_;
  const Registries& registries_;
  TrainerOptions options_;
  Clock::time_point start_, loop_start_;
  Phases phases_;

  PreparedData data_;
  Graph graph_;
  std::int64_t steps_per_epoch_, steps_;
  comm::Assignment assignment_;
  std::unique_ptr<exec::WorkerPool> pool_;
  std::unique_ptr<exec::Executor> executor_;
  exec::GradientLayout layout_;
  comm::ExchangeLayout exchange_layout_;
  std::unique_ptr<comm::Exchange> exchange_;
  std::unique_ptr<Updater> updater_;
  Schedule schedule_;
  Model model_;
  Progress progress_;
  std::unique_ptr<RunDirectory> directory_;  // rank 0
  std::unique_ptr<data::Loader> loader_;
  std::unique_ptr<LoaderSource> source_;
  std::unique_ptr<Evaluation> evaluation_;
  SignalGuard signals_;
  std::int64_t first_step_ = 0, written_step_ = -1;
  std::string best_name_;
  bool interrupted_ = false;
  double last_loss_ = 0, gradient_norm_ = 0, training_seconds_ = 0, reported_wait_ = 0;
};

}  // namespace lockstep::train
