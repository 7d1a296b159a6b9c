#include "run/train/evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "comm/reduce/micro_batch_assignment.hpp"
#include "comm/transport/point_to_point.hpp"
#include "comm/transport/recorded.hpp"
#include "core/round_up.hpp"
#include "graph/model_graph.hpp"
#include "lockstep/error.hpp"
#include "run/train/agreed_algorithms.hpp"
#include "step/exec/worker_pool.hpp"

namespace lockstep::train {

namespace {

data::LoaderOptions loader_options(const Graph& graph, int micro_batches, const EvaluationOptions& options,
                                   const Communicator& communicator) {
  data::LoaderOptions loader;
  loader.batch = options.micro_batch_samples * micro_batches;
  loader.micro_batches = micro_batches;
  loader.last_step = options.once ? 1 : std::uint64_t{1} << 40;
  loader.cache_bytes = options.cache_bytes;
  loader.max_threads = exec::max_loader_threads(communicator);
  loader.training = false;
  loader.drawn = options.filler != nullptr;
  loader.inputs = input_names(options.parts != nullptr ? options.parts->graph() : graph);
  loader.recorder = comm::recorder_of(communicator);
  return loader;
}

std::unique_ptr<exec::Executor> make_executor(const Graph& graph, Communicator& communicator,
                                              const exec::Device& device, exec::WorkerPool& pool,
                                              const EvaluationOptions& options) {
  const auto make = [&](const std::vector<std::string>& algorithms) {
    const exec::ExecutorOptions how{
        .lowered = options.lowered, .algorithms = algorithms, .keeps_weights = options.keeps_weights};
    return options.parts != nullptr
               ? std::make_unique<exec::Executor>(options.parts->of_model(), Mode::inference, device, pool, 0, how)
               : std::make_unique<exec::Executor>(graph, Mode::inference, device, pool, 0, how);
  };
  Communicator& ranks = options.parts != nullptr ? options.parts->group() : communicator;
  return options.alike ? make_with_algorithms_of_first_rank(ranks, make) : make({});
}

int micro_batches_for(std::int64_t samples, std::int64_t micro_batch_samples) {
  return divide_up(samples, micro_batch_samples);
}

// Assigns counts[r] micro-batches to rank r, which keeps as many as possible of those it had `before`, to make use of
// what it has loaded ahead and cached.
std::vector<std::vector<int>> deal(std::span<const int> counts, int micro_batches,
                                   std::vector<std::vector<int>> before) {
  LOCKSTEP_CHECK(std::accumulate(counts.begin(), counts.end(), 0) == micro_batches, "counts of all micro-batches");
  before.resize(counts.size());
  std::vector<char> kept(micro_batches);
  for (std::size_t r = 0; r < counts.size(); ++r) {
    before[r].resize(std::min(before[r].size(), static_cast<std::size_t>(counts[r])));
    for (const int micro_batch : before[r]) kept[micro_batch] = 1;
  }
  int next = 0;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    for (; before[r].size() < static_cast<std::size_t>(counts[r]); ++next) {
      if (kept[next] == 0) before[r].push_back(next);
    }
    std::sort(before[r].begin(), before[r].end());
  }
  return before;
}

// A rank that finishes no micro-batch for this long is considered hung.
std::chrono::milliseconds stalled_after(const EvaluationOptions& options) {
  return std::max<std::chrono::milliseconds>(options.timeout, std::chrono::minutes{1});
}

}  // namespace

double metric_value(const OpDef& metric, std::span<const double> sums) {
  if (metric.of_samples) return sums[0];
  if (metric.report) return metric.report(sums);
  const double mean = sums[1] > 0 ? sums[0] / sums[1] : 0;
  if (metric.root) return std::sqrt(mean);
  return metric.exponential ? std::exp(mean) : mean;
}

void add_metric(const Node& node, std::span<const double> sums, std::map<std::string, double>& metrics) {
  const std::string name = metric_name(node);
  metrics[name] = metric_value(*node.op, sums);
  if (node.classes.empty() || !node.op->of_class) return;
  const auto slash = name.rfind('/');  // of several losses, behind the name of one
  const std::string prefix = slash == std::string::npos ? "" : name.substr(0, slash + 1);
  const std::vector<double> values = node.op->of_class->values(sums);
  for (std::size_t k = 0; k < std::min(values.size(), node.classes.size()); ++k) {
    if (!std::isnan(values[k])) metrics[prefix + node.classes[k] + "/" + node.op->of_class->name] = values[k];
  }
}

void average_over_numbers(const Graph& graph, std::map<std::string, double>& metrics) {
  for (const std::int32_t index : graph.metrics) {
    const Node& node = graph.nodes[index];
    if (node.classes.empty() || node.op->of_class) continue;
    const std::string name = metric_name(node);
    const auto metric = name.rfind('/') + 1;  // 0: of the only loss
    double sum = 0;
    for (const auto& number : node.classes)
      sum += metrics.at(name.substr(0, metric) + number + "/" + name.substr(metric));
    metrics[name] = sum / node.classes.size();
  }
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
      micro_batches_(micro_batches_for(set.size(), options.micro_batch_samples)),
      executor_(make_executor(graph, communicator, device, pool, options)),
      loader_(set, std::move(pipeline), loader_options(graph, micro_batches_, options, communicator)) {
  executor_->fill_inputs(options.filler);
  for (std::size_t m = 0; m < graph.metrics.size(); ++m) {
    const Node& node = graph.nodes[graph.metrics[m]];
    const std::size_t values = exec::metric_values(graph, m);
    places_.push_back({node.op->whole_numbers, node.op->whole_numbers ? whole_sums_.size() : columns_, values});
    if (node.op->whole_numbers) {
      whole_sums_.resize(whole_sums_.size() + values + 1);
    } else {
      columns_ += values + 1;
    }
  }
  if (graph.keeps_output) {
    predicted_ = graph.at(graph.output).spec.elements() / options.micro_batch_samples;
    columns_ += predicted_;
  }
  std::vector<int> equal(communicator.size());
  for (const auto& ranks : ranks_of_parts()) {
    const std::vector<int> counts = comm::equal_counts(micro_batches_, ranks.size());
    for (std::size_t i = 0; i < ranks.size(); ++i) equal[ranks[i]] = counts[i];
  }
  use_counts(equal);
}

std::vector<std::vector<int>> Evaluation::ranks_of_parts() const {
  if (is_cut()) return options_.parts->ranks();
  std::vector<int> all(communicator_.size());
  std::iota(all.begin(), all.end(), 0);
  return {all};
}

std::vector<comm::MicroBatchAssignment> Evaluation::assignments() const {
  std::vector<comm::MicroBatchAssignment> list;
  for (const auto& ranks : ranks_of_parts()) {
    comm::MicroBatchAssignment& of_part = list.emplace_back();
    for (const int rank : ranks) of_part.micro_batches_of_rank.push_back(micro_batches_of_rank_[rank]);
  }
  return list;
}

const std::vector<int>& Evaluation::mine() const {
  return micro_batches_of_rank_[communicator_.rank()];
}

std::vector<int> Evaluation::counts() const {
  std::vector<int> counts;
  for (const auto& micro_batches : micro_batches_of_rank_) counts.push_back(micro_batches.size());
  return counts;
}

void Evaluation::use_counts(const std::vector<int>& counts) {
  if (counts == this->counts()) return;
  micro_batches_of_rank_.resize(counts.size());
  for (const auto& ranks : ranks_of_parts()) {
    std::vector<int> own;
    std::vector<std::vector<int>> before;
    for (const int rank : ranks) {
      own.push_back(counts[rank]);
      before.push_back(std::move(micro_batches_of_rank_[rank]));
    }
    auto dealt = deal(own, micro_batches_, std::move(before));
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      micro_batches_of_rank_[ranks[i]] = std::move(dealt[i]);
    }
  }
  if (is_cut()) schedule_ = options_.parts->schedule(assignments(), options_.workers, false);
  if (!is_cut() || !options_.parts->graph().inputs.empty()) loader_.assign(runs_, mine());
}

std::optional<std::map<std::string, double>> Evaluation::run_unless_stopped(const exec::ModelValues& model,
                                                                            std::uint64_t step,
                                                                            const comm::StopPoll& stop) {
  const Operation operation{"evaluation", step, options_.timeout};
  std::vector<float> rows((micro_batches_ * options_.micro_batch_samples) * columns());
  executor_->use(model);
  std::fill(whole_sums_.begin(), whole_sums_.end(), 0);
  const auto work = [&](comm::WorkProgress& progress) {
    compute(rows, progress);
    return !progress.stopped();
  };
  const auto complete =
      comm::work_together(communicator_, operation, work, {.stalled = stalled_after(options_), .stop = stop});
  if (!std::all_of(complete.begin(), complete.end(), [](bool of_rank) { return of_rank; })) return std::nullopt;
  ++runs_;
  std::vector<double> sums(columns() + whole_sums_.size());
  if (!is_cut() || options_.parts->own() == options_.parts->of_loss()) {
    gather(rows, operation);
    add_up_whole_numbers(operation);
    keep_predictions(rows);
    keep_losses(rows);
    sums = sums_of(rows);
    take_metrics_of_samples(rows, sums);
    sums.insert(sums.end(), whole_sums_.begin(), whole_sums_.end());
  }
  if (is_cut()) {
    const std::size_t loss = options_.parts->of_loss();
    communicator_.broadcast(std::as_writable_bytes(std::span(sums)), options_.parts->ranks()[loss].front(), operation);
  }
  return metrics_of(sums);
}

// Row s has the values of sample s: (loss, count, a metric's values, its count, ...). Only the rows of this rank's
// samples are filled.
void Evaluation::compute(std::vector<float>& rows, comm::WorkProgress& progress) {
  const auto take = [&](const exec::EvaluatedMicroBatch& micro_batch) {
    const std::int64_t first = micro_batch.micro_batch * options_.micro_batch_samples;
    for (std::int64_t s = 0; micro_batch.loss != nullptr && s < micro_batch.valid; ++s) {
      float* row = rows.data() + (first + s) * columns();
      row[0] = micro_batch.loss[s];
      row[1] = micro_batch.count[s];
      for (std::size_t m = 0; m < micro_batch.metrics.size(); ++m) {
        const auto& [whole, place, values] = places_[m];
        if (whole) continue;
        std::copy_n(micro_batch.metrics[m].first + s * values, values, row + place);
        row[place + values] = micro_batch.metrics[m].second[s];
      }
      const float* const predicted = micro_batch.prediction + s * predicted_;
      std::copy_n(predicted, predicted_, row + columns() - predicted_);
    }
    add_whole_numbers(micro_batch);
    progress.advance();
  };
  const exec::Step step{.number = runs_,
                        .micro_batches = mine(),
                        .of_part = is_cut() ? &schedule_ : nullptr,
                        .waves = options_.workers.empty() ? 0 : comm::count_waves(counts(), options_.workers)};
  executor_->evaluate(step, loader_, take, &progress.stopped());
}

void Evaluation::add_whole_numbers(const exec::EvaluatedMicroBatch& micro_batch) {
  if (whole_sums_.empty() || micro_batch.loss == nullptr) return;
  const std::lock_guard lock(whole_mutex_);
  for (std::size_t m = 0; m < micro_batch.metrics.size(); ++m) {
    const auto& [whole, place, values] = places_[m];
    for (std::size_t s = 0; whole && s < static_cast<std::size_t>(micro_batch.valid); ++s) {
      std::int64_t* const sums = whole_sums_.data() + place;
      for (std::size_t v = 0; v < values; ++v)
        sums[v] += static_cast<std::int64_t>(micro_batch.metrics[m].first[s * values + v]);
      sums[values] += static_cast<std::int64_t>(micro_batch.metrics[m].second[s]);
    }
  }
}

void Evaluation::add_up_whole_numbers(const Operation& operation) {
  if (!whole_sums_.empty()) {
    comm::all_reduce_sum(is_cut() ? options_.parts->group() : communicator_, whole_sums_, operation);
  }
}

// Gathers in rounds of as many micro-batches per rank as an equal assignment has, so that memory does not grow with an
// unequal one.
void Evaluation::gather(std::vector<float>& rows, const Operation& operation) const {
  Communicator& communicator = is_cut() ? options_.parts->group() : communicator_;
  if (communicator.size() == 1) return;
  const auto assigned =
      assignments()[is_cut() ? static_cast<std::size_t>(options_.parts->own()) : 0].micro_batches_of_rank;
  std::vector<int> counts;
  for (const auto& micro_batches : assigned) counts.push_back(micro_batches.size());
  const std::size_t most = *std::max_element(counts.begin(), counts.end());
  const std::size_t ranks = counts.size(), each = divide_up(static_cast<std::size_t>(micro_batches_), ranks);
  const std::size_t micro_batch_values = options_.micro_batch_samples * columns();
  std::vector<float> block(each * micro_batch_values), all(ranks * block.size());
  const auto each_in_round = [&](std::size_t first, const std::vector<int>& micro_batches, auto&& visit) {
    for (std::size_t i = first; i < std::min(first + each, micro_batches.size()); ++i) {
      visit((i - first) * micro_batch_values, micro_batches[i] * micro_batch_values);
    }
  };
  for (std::size_t first = 0; first < most; first += each) {
    each_in_round(first, mine(), [&](std::size_t in_block, std::size_t in_rows) {
      std::copy_n(rows.data() + in_rows, micro_batch_values, block.data() + in_block);
    });
    communicator.all_gather(std::as_bytes(std::span(block)), std::as_writable_bytes(std::span(all)), operation);
    for (std::size_t r = 0; r < ranks; ++r) {
      each_in_round(first, assigned[r], [&](std::size_t in_block, std::size_t in_rows) {
        std::copy_n(all.data() + r * block.size() + in_block, micro_batch_values, rows.data() + in_rows);
      });
    }
  }
}

void Evaluation::keep_predictions(const std::vector<float>& rows) {
  predictions_.clear();
  for (std::size_t at = 0; at < samples_ * columns(); at += columns()) {
    const auto end = rows.begin() + (at + columns());
    predictions_.insert(predictions_.end(), end - predicted_, end);
  }
}

void Evaluation::keep_losses(const std::vector<float>& rows) {
  losses_.clear();
  for (std::size_t s = 0; s < static_cast<std::size_t>(samples_); ++s) losses_.push_back(rows[s * columns()]);
}

std::vector<double> Evaluation::sums_of(const std::vector<float>& rows) const {
  std::vector<double> sums(columns(), 0.0);
  for (std::size_t at = 0; at < samples_ * columns(); at += columns()) {
    for (std::size_t c = 0; c < columns(); ++c) sums[c] += rows[at + c];
  }
  return sums;
}

void Evaluation::take_metrics_of_samples(const std::vector<float>& rows, std::vector<double>& sums) const {
  for (std::size_t m = 0; m < graph_.metrics.size(); ++m) {
    const auto& of_samples = graph_.nodes[graph_.metrics[m]].op->of_samples;
    if (!of_samples) continue;
    const MetricPlace& place = places_[m];
    const std::size_t samples = samples_;
    std::vector<float> values(samples * place.values);
    for (std::size_t s = 0; s < samples; ++s) {
      std::copy_n(rows.data() + s * columns() + place.first, place.values, values.data() + s * place.values);
    }
    sums[place.first] = of_samples(values, samples);
  }
}

std::map<std::string, double> Evaluation::metrics_of(std::span<const double> sums) const {
  std::map<std::string, double> metrics{{"loss", sums[0] / sums[1]}};
  for (std::size_t m = 0; m < graph_.metrics.size(); ++m) {
    const Node& node = graph_.nodes[graph_.metrics[m]];
    const MetricPlace& place = places_[m];
    const std::size_t first = place.whole ? columns() + place.first : place.first;
    add_metric(node, sums.subspan(first, place.values + 1), metrics);
  }
  average_over_numbers(graph_, metrics);
  if (std::isnan(metrics.at("loss"))) {  // what is predicted is of no class, but some metrics count it as one
    for (auto& [name, value] : metrics) value = std::numeric_limits<double>::quiet_NaN();
  }
  return metrics;
}

}  // namespace lockstep::train
