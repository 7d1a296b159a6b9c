// TensorBoard's event files: curves, histograms and images of a run, for TensorBoard to read while they are written.
//
// A start of a run writes one file. A resumed run writes another, which begins with a record that voids the repeated
// steps of the earlier files. A full disk does not end the run: records are missing then, but none is incomplete.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/events.hpp"

namespace lockstep::telemetry {

/// The distribution of values, in a few numbers. Of the finite ones only. Bucket i holds those in (limits[i - 1],
/// limits[i]], the first also the smallest; all are equally wide. Without values there is one empty bucket, since
/// readers need one.
struct Histogram {
  double min = 0, max = 0, sum = 0, sum_of_squares = 0;
  double count = 0;
  std::vector<double> limits, buckets;
};

[[nodiscard]] Histogram histogram_of(std::span<const float> values);

/// A node of the graph page. Names are paths: "block1/conv" stands in the box "block1".
struct BoardNode {
  std::string name, op;
  std::vector<std::string> inputs;
  std::vector<std::int64_t> shape;  ///< of the output
  std::string settings;
};

/// An image file.
struct BoardImage {
  std::int64_t height = 0, width = 0;
  std::string png;  ///< RGB
};

using HyperParameter = std::pair<std::string, std::variant<double, bool, std::string>>;

class TensorBoard final : public events::Sink {
 public:
  /// `steps`: done before. Makes the folder; throws Error(cannot_create) where a file cannot be made.
  TensorBoard(const std::string& folder, std::int64_t steps);
  ~TensorBoard() override;
  TensorBoard(const TensorBoard&) = delete;
  TensorBoard& operator=(const TensorBoard&) = delete;

  /// Whether what does not change (the job, the graph) must be written: no earlier file has it, or it was voided.
  [[nodiscard]] bool is_new() const;

  /// `step`, `eval` and `balance`: their numbers as curves ("train/loss", "validation/accuracy"). `end`: that the run
  /// is done. Others: nothing.
  void event(const events::Event& event) override;

  void histograms(std::int64_t step, const std::vector<std::pair<std::string, Histogram>>& all);
  void image(std::int64_t step, const std::string& tag, const BoardImage& image);
  /// `markdown` as the text page shows it.
  void text(std::int64_t step, const std::string& tag, const std::string& markdown);
  void graph(const std::vector<BoardNode>& nodes);
  /// `metrics`: curves that the page of hyper-parameters shows beside them.
  void hyper_parameters(const std::vector<HyperParameter>& parameters, const std::vector<std::string>& metrics);

 private:
  void end(const events::End& end);

  class Impl;
  std::unique_ptr<Impl> impl_;
  double shown_seconds_ = 0;  // `seconds` of the step before
};

}  // namespace lockstep::telemetry
