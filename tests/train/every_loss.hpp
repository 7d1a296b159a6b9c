// Every loss, on a table that has a target for each.
#pragma once

#include <fmt/format.h>

#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace lockstep {

struct LossCase {
  std::string loss;    ///< as the job has it
  std::string target;  ///< columns of the table
  int outputs;         ///< what the model predicts of a row
  std::string metrics = {};
};

inline const std::vector<LossCase> kEveryLoss = {
    {"cross_entropy", "kind", 3, "accuracy, top5, perplexity, macro_precision, macro_recall, macro_f1, mean_iou"},
    {"{cross_entropy: {focal: 2}}", "kind", 3},
    {"{cross_entropy: {label_smoothing: 0.1}}", "[p, q, r]", 3},
    {"kl_divergence", "[p, q, r]", 3},
    {"mean_squared_error", "[size, p]", 2, "mae, rmse, r2"},
    {"mean_absolute_error", "size", 1},
    {"{huber: 0.3}", "size", 1},
    {"{binary_cross_entropy: {positive_weight: 3}}", "[high, right]", 2,
     "binary_accuracy, precision, recall, f1, iou, auc"},
    {"{binary_cross_entropy: {focal: 2}}", "[p, q]", 2},
    {"{triplet: 8}", "kind", 6},
    {"contrastive", "kind", 4},
};

inline constexpr int kLossRows = 48;

/// The class of a row: kind0, kind1 or kind2.
inline int kind_of_row(int row) {
  return row % 7 == 0 ? 2 : row % 2;
}

/// Writes rows of two features, the targets and a weight, each row `copies` of its number times.
inline void write_loss_rows(
    const std::string& path, const std::function<int(int)>& copies = [](int) { return 1; },
    const std::function<double(int)>& weight = [](int) { return 1; }) {
  std::ofstream file(path);
  file << "a,b,size,p,q,r,high,right,kind,w\n";
  for (int i = 0; i < kLossRows; ++i) {
    const double a = (i * 7 % 24) / 24.0, b = (i * 5 % 24) / 12.0 - 1, p = a / 2, q = (1 - a) / 3;
    for (int copy = 0; copy < copies(i); ++copy) {
      file << fmt::format("{:.4f},{:.4f},{:.4f},{:.6f},{:.6f},{:.6f},{},{},kind{},{}\n", a, b,
                          2 * a - b * b + (i % 5) / 10.0, p, q, 1 - p - q, b > 0.2 ? 1 : 0, a > 0.6 ? 1 : 0,
                          kind_of_row(i), weight(i));
    }
  }
}

/// A job of one of them, in batches of all rows of `path`; `rows`: how many there are.
inline std::string job_of_loss(const LossCase& of, const std::string& path, int rows, const std::string& weight,
                               const std::string& validation) {
  return fmt::format(R"(
job:
  name: loss
  seed: 3
  model: {{layers: [{{linear: 8}}, tanh, {{linear: {}}}]}}
  data:
    train: {{table: {{path: {}, target: {}, features: [a, b]{}}}}}
    validation: {{table: {{path: {}, target: {}, features: [a, b]}}}}
    normalize: never
  loss: {}
  metrics: [{}]
  batch_size: {}
  micro_batches: 6
  steps: 8
  optimizer: {{sgd: {{momentum: 0.9}}}}
  learning_rate: 0.05
  evaluate: {{every: 4 steps}}
  checkpoint: never
)",
                     of.outputs, path, of.target, weight, validation, of.target, of.loss, of.metrics, rows);
}

}  // namespace lockstep
