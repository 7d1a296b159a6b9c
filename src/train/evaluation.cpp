#include "train/evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "comm/reduce/shard_assignment.hpp"
#include "comm/transport/recorded.hpp"
#include "exec/worker_pool.hpp"
#include "graph/model_graph.hpp"
#include "lockstep/error.hpp"
#include "train/agreed_algorithms.hpp"

namespace lockstep::train {

namespace {

data::LoaderOptions loader_options(const Graph& graph, int shards, const EvaluationOptions& options,
                                   const Communicator& communicator) {
  data::LoaderOptions loader;
  loader.batch = options.shard_samples * shards;
  loader.shards = shards;
  loader.last_step = options.once ? 1 : std::uint64_t{1} << 40;
  loader.cache_bytes = options.cache_bytes;
  loader.max_threads = exec::max_loader_threads(communicator);
  loader.training = false;
  loader.drawn = options.filler != nullptr;
  loader.inputs = input_names(graph);
  loader.recorder = comm::recorder_of(communicator);
  return loader;
}

std::unique_ptr<exec::Executor> make_executor(const Graph& graph, Communicator& communicator,
                                              const exec::Device& device, exec::WorkerPool& pool,
                                              const EvaluationOptions& options) {
  const auto make = [&](const std::vector<std::string>& algorithms) {
    return std::make_unique<exec::Executor>(
        graph, Mode::inference, device, pool, 0,
        exec::ExecutorOptions{.lowered = options.lowered, .algorithms = algorithms});
  };
  return options.alike ? make_with_algorithms_of_first_rank(communicator, make) : make({});
}

int shards_for(std::int64_t samples, std::int64_t shard_samples) {
  return static_cast<int>((samples + shard_samples - 1) / shard_samples);
}

// Who evaluates what: counts[r] shards for rank r, which keeps of those it had `before` what it can, so that what it
// has loaded ahead and cached is of use.
std::vector<std::vector<int>> deal(std::span<const int> counts, int shards, std::vector<std::vector<int>> before) {
  LOCKSTEP_CHECK(std::accumulate(counts.begin(), counts.end(), 0) == shards, "counts of all shards");
  before.resize(counts.size());
  std::vector<char> kept(static_cast<std::size_t>(shards));
  for (std::size_t r = 0; r < counts.size(); ++r) {
    before[r].resize(std::min(before[r].size(), static_cast<std::size_t>(counts[r])));
    for (const int shard : before[r]) kept[static_cast<std::size_t>(shard)] = 1;
  }
  int next = 0;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    for (; before[r].size() < static_cast<std::size_t>(counts[r]); ++next) {
      if (kept[static_cast<std::size_t>(next)] == 0) before[r].push_back(next);
    }
    std::sort(before[r].begin(), before[r].end());
  }
  return before;
}

// Without a shard that gets done for so long, a rank hangs.
std::chrono::milliseconds stalled_after(const EvaluationOptions& options) {
  return std::max<std::chrono::milliseconds>(options.timeout, std::chrono::minutes{1});
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
      loader_(set, std::move(pipeline), loader_options(graph, shards_, options, communicator)) {
  executor_->fill_inputs(options.filler);
  use_counts(comm::equal_counts(shards_, communicator.size()));
}

const std::vector<int>& Evaluation::mine() const {
  return shards_of_rank_[static_cast<std::size_t>(communicator_.rank())];
}

std::vector<int> Evaluation::counts() const {
  std::vector<int> counts;
  for (const auto& shards : shards_of_rank_) counts.push_back(static_cast<int>(shards.size()));
  return counts;
}

void Evaluation::use_counts(const std::vector<int>& counts) {
  if (counts == this->counts()) return;
  shards_of_rank_ = deal(counts, shards_, std::move(shards_of_rank_));
  loader_.assign(runs_, mine());
}

std::map<std::string, double> Evaluation::run(const exec::ModelValues& model, std::uint64_t step) {
  const Operation operation{"evaluation", step, options_.timeout};
  std::vector<float> rows(static_cast<std::size_t>(shards_ * options_.shard_samples) * columns());
  executor_->use(model);
  const auto work = [&](comm::WorkProgress& progress) {
    compute(rows, progress);
    return true;
  };
  (void)comm::work_together(communicator_, operation, work, stalled_after(options_));
  ++runs_;
  gather(rows, operation);
  return metrics_of(rows);
}

// Sample s: row s of columns (loss, count, metric, count, ...). Only this rank's are filled.
void Evaluation::compute(std::vector<float>& rows, comm::WorkProgress& progress) {
  executor_->evaluate(runs_, mine(), loader_, [&](const exec::EvaluatedShard& shard) {
    const std::int64_t first = shard.shard * options_.shard_samples;
    for (std::int64_t s = 0; s < shard.valid; ++s) {
      float* row = rows.data() + static_cast<std::size_t>(first + s) * columns();
      row[0] = shard.loss[s];
      row[1] = shard.count[s];
      for (std::size_t m = 0; m < shard.metrics.size(); ++m) {
        row[2 + 2 * m] = shard.metrics[m].first[s];
        row[3 + 2 * m] = shard.metrics[m].second[s];
      }
    }
    progress.advance();
  });
}

// In rounds of as many shards a rank as an equal assignment has, so that memory does not grow with an unequal one.
void Evaluation::gather(std::vector<float>& rows, const Operation& operation) const {
  if (communicator_.size() == 1) return;
  const std::vector<int> counts = this->counts();
  const auto most = static_cast<std::size_t>(*std::max_element(counts.begin(), counts.end()));
  const std::size_t ranks = counts.size(), each = (static_cast<std::size_t>(shards_) + ranks - 1) / ranks;
  const std::size_t shard_values = static_cast<std::size_t>(options_.shard_samples) * columns();
  std::vector<float> block(each * shard_values), all(ranks * block.size());
  const auto each_in_round = [&](std::size_t first, const std::vector<int>& shards, auto&& visit) {
    for (std::size_t i = first; i < std::min(first + each, shards.size()); ++i) {
      visit((i - first) * shard_values, static_cast<std::size_t>(shards[i]) * shard_values);
    }
  };
  for (std::size_t first = 0; first < most; first += each) {
    each_in_round(first, mine(), [&](std::size_t in_block, std::size_t in_rows) {
      std::copy_n(rows.data() + in_rows, shard_values, block.data() + in_block);
    });
    communicator_.all_gather(std::as_bytes(std::span(block)), std::as_writable_bytes(std::span(all)), operation);
    for (std::size_t r = 0; r < ranks; ++r) {
      each_in_round(first, shards_of_rank_[r], [&](std::size_t in_block, std::size_t in_rows) {
        std::copy_n(all.data() + r * block.size() + in_block, shard_values, rows.data() + in_rows);
      });
    }
  }
}

std::map<std::string, double> Evaluation::metrics_of(const std::vector<float>& rows) const {
  std::vector<double> sums(columns(), 0.0);
  for (std::size_t at = 0; at < static_cast<std::size_t>(samples_) * columns(); at += columns()) {
    for (std::size_t c = 0; c < columns(); ++c) sums[c] += static_cast<double>(rows[at + c]);
  }
  std::map<std::string, double> metrics{{"loss", sums[0] / sums[1]}};
  for (std::size_t m = 0; m < graph_.metrics.size(); ++m) {
    const Node& node = graph_.nodes[static_cast<std::size_t>(graph_.metrics[m])];
    metrics[metric_name(node)] = metric_value(*node.op, sums[2 + 2 * m], sums[3 + 2 * m]);
  }
  return metrics;
}

}  // namespace lockstep::train
