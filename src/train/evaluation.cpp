#include "train/evaluation.hpp"

#include <cmath>

#include "train/agreed_plans.hpp"
#include "train/shares.hpp"

namespace lockstep::train {

namespace {

data::LoaderOptions loader_options(int shards, const EvaluationOptions& options, const Communicator& communicator) {
  data::LoaderOptions loader;
  loader.batch = options.shard_samples * shards;
  loader.shards = shards;
  loader.last_step = std::uint64_t{1} << 40;
  loader.cache_bytes = options.cache_bytes;
  loader.most_threads = most_loader_threads(communicator);
  loader.training = false;
  loader.drawn = options.filler != nullptr;
  return loader;
}

std::unique_ptr<exec::Executor> make_executor(const Graph& graph, Communicator& communicator,
                                              const exec::Device& device, exec::WorkerPool& pool,
                                              const EvaluationOptions& options) {
  const auto make = [&](const std::vector<std::string>& plans) {
    return std::make_unique<exec::Executor>(graph, Mode::inference, device, pool, 0,
                                            exec::ExecutorOptions{.lowered = options.lowered, .plans = plans});
  };
  return options.alike ? make_with_plans_of_first_rank(communicator, make) : make({});
}

int shards_for(std::int64_t samples, std::int64_t shard_samples) {
  return static_cast<int>((samples + shard_samples - 1) / shard_samples);
}

}  // namespace

double metric_value(const OpDef& metric, double sum, double count) {
  const double mean = count > 0 ? sum / count : 0;
  return metric.exponential ? std::exp(mean) : mean;
}

std::string metric_name(const Node& node) {
  return node.name.starts_with("metric.") ? node.name.substr(7) : node.name;
}

Evaluation::Evaluation(const Graph& graph, const DataSet& set, data::Pipeline pipeline, Communicator& communicator,
                       const exec::Device& device, exec::WorkerPool& pool, const EvaluationOptions& options)
    : graph_(graph),
      communicator_(communicator),
      options_(options),
      samples_(set.size()),
      shards_(shards_for(set.size(), options.shard_samples)),
      executor_(make_executor(graph, communicator, device, pool, options)),
      loader_(set, std::move(pipeline), loader_options(shards_, options, communicator)),
      source_(loader_, graph, communicator.recorder()) {
  executor_->fill_inputs(options.filler);
  for (int shard = communicator.rank(); shard < shards_; shard += communicator.size()) mine_.push_back(shard);
  loader_.assign(0, mine_);
}

std::map<std::string, double> Evaluation::run(const exec::ModelValues& model, std::uint64_t step) {
  const std::size_t columns = 2 * (1 + graph_.metrics.size());
  const auto b = static_cast<std::size_t>(options_.shard_samples);
  const int ranks = communicator_.size();
  const std::size_t shards_each = static_cast<std::size_t>((shards_ + ranks - 1) / ranks);
  const std::size_t block = shards_each * b * columns;

  // Sample s of this rank's i-th shard: columns (loss, count, metric, count, ...).
  std::vector<float> local(block);
  executor_->use(model);
  executor_->evaluate(mine_, source_, [&](const exec::EvaluatedShard& shard) {
    const auto index = static_cast<std::size_t>(shard.shard / ranks);
    for (std::size_t s = 0; s < static_cast<std::size_t>(shard.valid); ++s) {
      float* row = local.data() + (index * b + s) * columns;
      row[0] = shard.loss[s];
      row[1] = shard.count[s];
      for (std::size_t m = 0; m < shard.metrics.size(); ++m) {
        row[2 + 2 * m] = shard.metrics[m].first[s];
        row[3 + 2 * m] = shard.metrics[m].second[s];
      }
    }
  });
  std::vector<float> all(block * static_cast<std::size_t>(ranks));
  communicator_.all_gather(std::as_bytes(std::span(local)), std::as_writable_bytes(std::span(all)),
                           {"evaluation", step, options_.timeout});

  std::vector<double> sums(columns, 0.0);
  for (std::int64_t id = 0; id < samples_; ++id) {
    const auto shard = static_cast<std::size_t>(id / options_.shard_samples);
    const auto rank = shard % static_cast<std::size_t>(ranks), index = shard / static_cast<std::size_t>(ranks);
    const auto sample = static_cast<std::size_t>(id % options_.shard_samples);
    const float* row = all.data() + rank * block + (index * b + sample) * columns;
    for (std::size_t c = 0; c < columns; ++c) sums[c] += static_cast<double>(row[c]);
  }
  std::map<std::string, double> metrics{{"loss", sums[0] / sums[1]}};
  for (std::size_t m = 0; m < graph_.metrics.size(); ++m) {
    const Node& node = graph_.nodes[static_cast<std::size_t>(graph_.metrics[m])];
    metrics[metric_name(node)] = metric_value(*node.op, sums[2 + 2 * m], sums[3 + 2 * m]);
  }
  return metrics;
}

}  // namespace lockstep::train
