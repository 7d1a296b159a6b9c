// TensorBoard's event files: curves, histograms and images of a run, which TensorBoard can read while they are written.
//
// Each start of a run writes one file. A resumed run's file begins with a record that voids the repeated steps in
// earlier files. A full disk does not end the run: records are then missing, but none is incomplete.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/events.hpp"
#include "observe/telemetry/step_thinning.hpp"

namespace lockstep::telemetry {

/// Summarises the distribution of the finite values. Bucket i has those in (limits[i - 1], limits[i]], the first one
/// also the smallest value; all are equally wide. Without values there is one empty bucket, since readers need one.
struct Histogram {
  double min = 0, max = 0, sum = 0, sum_of_squares = 0;
  double count = 0;
  std::vector<double> limits, buckets;
};

[[nodiscard]] Histogram histogram_of(std::span<const float> values);

/// A node of the graph page. Names are paths: "block1/conv" is in the box "block1".
struct BoardNode {
  std::string name, op;
  std::vector<std::string> inputs;
  std::vector<std::int64_t> shape;  ///< the output's
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
  /// `steps`: done before. `kept`: those that curves have. Creates the folder; throws Error(cannot_create) if a file
  /// cannot be created.
  TensorBoard(const std::string& folder, std::int64_t steps, KeptSteps kept = KeptSteps());
  ~TensorBoard() override;
  TensorBoard(const TensorBoard&) = delete;
  TensorBoard& operator=(const TensorBoard&) = delete;

  /// Whether constant content (the job, the graph) must be written: no earlier file has it, or it was voided.
  bool is_new() const;

  /// `step`, `eval` and `balance`: their numbers as curves ("train/loss", "validation/accuracy"). `end`: that the run
  /// is done. Other events are ignored. Micro-batches of ranks are drawn as steps: TensorBoard joins points by slopes,
  /// so there is one for the last step before each move, too, and for the run's last step.
  void event(const events::Event& event) override;

  void histograms(std::int64_t step, const std::vector<std::pair<std::string, Histogram>>& all);
  void image(std::int64_t step, const std::string& tag, const BoardImage& image);
  /// Shows `markdown` on the text page.
  void text(std::int64_t step, const std::string& tag, const std::string& markdown);
  void graph(const std::vector<BoardNode>& nodes);
  /// Points of curves.
  void scalars(std::int64_t step, const std::vector<std::pair<std::string, double>>& values);
  /// The columns of the page of hyper-parameters, of which a log folder has one experiment: parameters, of whose values
  /// only the types count, and `metrics`, the curves to show beside them.
  void experiment(const std::vector<HyperParameter>& parameters, const std::vector<std::string>& metrics);
  /// A row of that page: this folder's run.
  void session(const std::vector<HyperParameter>& parameters);
  void end_session(std::int64_t step, bool success);

 private:
  /// The micro-batches of the ranks in this step, unless they are written already.
  void write_shares(std::int64_t step);

  class Impl;
  std::unique_ptr<Impl> impl_;
  KeptSteps kept_;
  double last_seconds_ = 0;       // `seconds` of the step before
  events::ByRank shares_;         // since the last move; empty: none yet
  std::int64_t shares_step_ = 0;  // the last step that these are written for
};

}  // namespace lockstep::telemetry
