#include "observe/telemetry/tensorboard.hpp"

#include <fmt/format.h>
#include <tensorboard.pb.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "observe/telemetry/record_file.hpp"
#include "observe/telemetry/unix_time.hpp"

namespace lockstep::telemetry {

namespace {

constexpr int kBuckets = 64;

namespace pb = lockstep::tensorboard;
constexpr const char* kHyperParameters = "hparams";  // the plugin's name

/// The curves of one event. TensorBoard shows groups, the first words of tags, in the order of their names: so what
/// everybody looks at is `train` and `validation`, and all else begins with later letters.
class Curves {
 public:
  void add(const std::string& tag, double value) {
    auto* added = summary_.add_value();
    added->set_tag(tag);
    added->set_simple_value(static_cast<float>(value));
  }
  /// A curve per name or rank.
  template <class Values>
  void add_all(const std::string& prefix, const Values& values) {
    for (const auto& [key, value] : values) add(fmt::format("{}{}", prefix, key), value);
  }
  [[nodiscard]] pb::Summary& summary() { return summary_; }

 private:
  pb::Summary summary_;
};

/// `seconds`: since the previous step.
pb::Summary step_curves(const events::Step& step, double seconds) {
  Curves curves;
  curves.add("train/loss", step.loss);
  curves.add_all("train/", step.metrics);
  curves.add("train/learning_rate", step.learning_rate);
  if (step.gradient_norm) curves.add("train/gradient_norm", *step.gradient_norm);
  if (step.loss_scale) curves.add("train/loss_scale", *step.loss_scale);
  curves.add("work/samples_per_second", step.samples_per_second);
  curves.add("work/step_seconds", seconds);
  curves.add("work/data_wait_seconds", step.data_wait_seconds);
  const auto& of_ranks = step.micro_batch_seconds;
  // A full table may be of other ranks in each step.
  if (of_ranks && of_ranks->size() < events::Step::kMostRanks)
    curves.add_all("work_seconds_per_micro_batch/rank_", *of_ranks);
  if (step.micro_batch_seconds_of_all)
    curves.add_all("work_seconds_per_micro_batch/", *step.micro_batch_seconds_of_all);
  return std::move(curves.summary());
}

pb::Summary eval_curves(const events::Evaluation& eval) {
  Curves curves;
  curves.add(eval.set + "/loss", eval.loss);
  curves.add_all(eval.set + "/", eval.metrics);
  return std::move(curves.summary());
}

/// A value that only its plugin uses.
void set_plugin(pb::Summary::Value& value, const std::string& tag, const std::string& plugin) {
  value.set_tag(tag);
  value.mutable_metadata()->mutable_plugin_data()->set_plugin_name(plugin);
}

void add_hyper_parameters(pb::Summary& summary, const std::string& name, const pb::HyperParameters& data) {
  auto& value = *summary.add_value();
  set_plugin(value, "_hparams_/" + name, kHyperParameters);
  value.mutable_metadata()->mutable_plugin_data()->set_content(data.SerializeAsString());
  value.mutable_tensor()->set_dtype(pb::DT_FLOAT);  // empty: the page requires a value, but does not use it
  value.mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(0);
}

void set(pb::HyperParameters::Parameter& info, pb::Value& value, const HyperParameter& parameter) {
  info.set_name(parameter.first);
  if (const auto* real = std::get_if<double>(&parameter.second)) {
    info.set_type(pb::HyperParameters::Parameter::FLOAT64);
    value.set_number_value(*real);
  } else if (const auto* flag = std::get_if<bool>(&parameter.second)) {
    info.set_type(pb::HyperParameters::Parameter::BOOL);
    value.set_bool_value(*flag);
  } else {
    info.set_type(pb::HyperParameters::Parameter::STRING);
    value.set_string_value(std::get<std::string>(parameter.second));
  }
}

pb::Histogram to_proto(const Histogram& histogram) {
  pb::Histogram result;
  result.set_min(histogram.min);
  result.set_max(histogram.max);
  result.set_num(histogram.count);
  result.set_sum(histogram.sum);
  result.set_sum_squares(histogram.sum_of_squares);
  result.mutable_bucket_limit()->Add(histogram.limits.begin(), histogram.limits.end());
  result.mutable_bucket()->Add(histogram.buckets.begin(), histogram.buckets.end());
  return result;
}

}  // namespace

Histogram histogram_of(std::span<const float> values) {
  Histogram result;
  result.min = std::numeric_limits<double>::infinity();
  result.max = -result.min;
  for (const float value : values) {
    const double exact = value;
    if (!std::isfinite(exact)) continue;
    result.min = std::min(result.min, exact);
    result.max = std::max(result.max, exact);
    result.sum += exact;
    result.sum_of_squares += exact * exact;
    ++result.count;
  }
  if (result.count == 0) return {.limits = {0}, .buckets = {0}};
  const double width = (result.max - result.min) / kBuckets;
  if (width == 0) {
    result.limits = {result.max};
    result.buckets = {result.count};
    return result;
  }
  for (int i = 1; i < kBuckets; ++i) result.limits.push_back(result.min + i * width);
  result.limits.push_back(result.max);
  result.buckets.assign(kBuckets, 0);
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const double place = std::ceil((value - result.min) / width) - 1;
    result.buckets[std::clamp(place, 0.0, kBuckets - 1.0)] += 1;
  }
  return result;
}

class TensorBoard::Impl {
 public:
  Impl(const std::string& folder, std::int64_t steps) : file_(folder), is_new_(steps == 0 || file_.is_first()) {
    pb::Event version;
    version.set_file_version("brain.Event:2");
    write(version, 0);
    pb::Event start;
    start.mutable_session_log()->set_status(pb::SessionLog::START);
    write(start, steps == 0 ? 0 : steps + 1);  // voids earlier records of this step and later ones
  }
  bool is_new() const { return is_new_; }

  void write(pb::Event& event, std::int64_t step) {
    event.set_wall_time(unix_time());
    event.set_step(step);
    file_.append(event.SerializeAsString());
  }
  void write(pb::Summary summary, std::int64_t step) {
    if (summary.value_size() == 0) return;
    pb::Event event;
    *event.mutable_summary() = std::move(summary);
    write(event, step);
  }

 private:
  RecordFile file_;
  bool is_new_;
};

TensorBoard::TensorBoard(const std::string& folder, std::int64_t steps, KeptSteps kept)
    : impl_(std::make_unique<Impl>(folder, steps)), kept_(kept) {}
TensorBoard::~TensorBoard() = default;

bool TensorBoard::is_new() const {
  return impl_->is_new();
}

void TensorBoard::event(const events::Event& event) {
  if (const auto* start = std::get_if<events::Start>(&event)) kept_.start(*start);
  if (const auto* step = std::get_if<events::Step>(&event)) {
    const double seconds = step->seconds - std::exchange(last_seconds_, step->seconds);
    if (kept_.has(*step)) impl_->write(step_curves(*step, seconds), step->step);
  }
  if (const auto* eval = std::get_if<events::Evaluation>(&event)) impl_->write(eval_curves(*eval), eval->step);
  if (const auto* balance = std::get_if<events::Balance>(&event)) {
    write_shares(balance->step);
    shares_ = balance->shares_by_rank;
    write_shares(balance->step + 1);
  }
  const auto* end = std::get_if<events::End>(&event);
  if (end != nullptr) write_shares(end->steps);
  if (end != nullptr && !end->interrupted) end_session(end->steps, true);  // an interrupted run will be resumed
}

void TensorBoard::write_shares(std::int64_t step) {
  if (shares_.empty() || step <= shares_step_) return;
  Curves curves;
  curves.add_all("work_micro_batches/rank_", shares_);
  impl_->write(std::move(curves.summary()), step);
  shares_step_ = step;
}

void TensorBoard::scalars(std::int64_t step, const std::vector<std::pair<std::string, double>>& values) {
  Curves curves;
  curves.add_all("", values);
  impl_->write(std::move(curves.summary()), step);
}

void TensorBoard::histograms(std::int64_t step, const std::vector<std::pair<std::string, Histogram>>& all) {
  pb::Summary summary;
  for (const auto& [tag, histogram] : all) {
    auto* value = summary.add_value();
    value->set_tag(tag);
    *value->mutable_histo() = to_proto(histogram);
  }
  impl_->write(std::move(summary), step);
}

void TensorBoard::image(std::int64_t step, const std::string& tag, const BoardImage& image) {
  pb::Summary summary;
  auto* value = summary.add_value();
  value->set_tag(tag);
  value->mutable_image()->set_height(static_cast<std::int32_t>(image.height));
  value->mutable_image()->set_width(static_cast<std::int32_t>(image.width));
  value->mutable_image()->set_colorspace(3);
  value->mutable_image()->set_encoded_image_string(image.png);
  impl_->write(std::move(summary), step);
}

void TensorBoard::text(std::int64_t step, const std::string& tag, const std::string& markdown) {
  pb::Summary summary;
  auto& value = *summary.add_value();
  set_plugin(value, tag, "text");
  value.mutable_tensor()->set_dtype(pb::DT_STRING);
  (void)value.mutable_tensor()->mutable_tensor_shape();
  value.mutable_tensor()->add_string_val(markdown);
  impl_->write(std::move(summary), step);
}

void TensorBoard::graph(const std::vector<BoardNode>& nodes) {
  pb::GraphDef graph;
  graph.mutable_versions()->set_producer(1);
  for (const BoardNode& node : nodes) {
    auto* added = graph.add_node();
    added->set_name(node.name);
    added->set_op(node.op);
    added->mutable_input()->Add(node.inputs.begin(), node.inputs.end());
    auto* shape = (*added->mutable_attr())["_output_shapes"].mutable_list()->add_shape();
    for (const std::int64_t size : node.shape) shape->add_dim()->set_size(size);
    if (!node.settings.empty()) (*added->mutable_attr())["settings"].set_s(node.settings);
  }
  pb::Event event;
  event.set_graph_def(graph.SerializeAsString());
  impl_->write(event, 0);
}

void TensorBoard::experiment(const std::vector<HyperParameter>& parameters, const std::vector<std::string>& metrics) {
  pb::HyperParameters data;
  data.mutable_experiment()->set_time_created_secs(unix_time());
  for (const HyperParameter& parameter : parameters) {
    pb::Value only_its_type_counts;
    set(*data.mutable_experiment()->add_hparam_infos(), only_its_type_counts, parameter);
  }
  for (const std::string& metric : metrics) {
    data.mutable_experiment()->add_metric_infos()->mutable_name()->set_tag(metric);
  }
  pb::Summary summary;
  add_hyper_parameters(summary, "experiment", data);
  impl_->write(std::move(summary), 0);
}

void TensorBoard::session(const std::vector<HyperParameter>& parameters) {
  pb::HyperParameters data;
  data.mutable_session_start_info()->set_start_time_secs(unix_time());
  for (const HyperParameter& parameter : parameters) {
    pb::HyperParameters::Parameter only_the_value_counts;
    set(only_the_value_counts, (*data.mutable_session_start_info()->mutable_hparams())[parameter.first], parameter);
  }
  pb::Summary summary;
  add_hyper_parameters(summary, "session_start_info", data);
  impl_->write(std::move(summary), 0);
}

void TensorBoard::end_session(std::int64_t step, bool success) {
  pb::HyperParameters data;
  data.mutable_session_end_info()->set_status(success ? pb::HyperParameters::SessionEnd::SUCCESS
                                                      : pb::HyperParameters::SessionEnd::FAILURE);
  data.mutable_session_end_info()->set_end_time_secs(unix_time());
  pb::Summary summary;
  add_hyper_parameters(summary, "session_end_info", data);
  impl_->write(std::move(summary), step);
}

}  // namespace lockstep::telemetry
