// Predictions of a set by all ranks: each computes a run of the micro-batches, and all then have all predictions, in
// order. Which samples are computed together does not depend on the ranks, so neither do the bits.
#include <algorithm>
#include <chrono>

#include "cli/predict.hpp"
#include "comm/transport/work_together.hpp"
#include "run/ensemble/combine.hpp"
#include "run/ensemble/shares.hpp"
#include "run/train/not_finite.hpp"

namespace lockstep::cli {

std::vector<SamplePrediction> predict_on_ranks(train::LoadedModel& model, const DataSet& set,
                                               Communicator& communicator, bool logits) {
  const std::size_t samples = set.size();
  const std::size_t width = elements(model.prediction_shape());
  const std::int64_t micro_batch_samples = model.job().batch_size / model.job().micro_batches;
  std::vector<float> all(samples * width);
  if (samples > 0) {
    const auto shares = ensemble::shares_of_ranks(set.size(), {micro_batch_samples}, communicator.size());
    const auto predictor = model.predictor_of(set);
    const auto timeout = model.job().timeout();
    const auto work = [&](comm::WorkProgress& progress) {
      for (const auto& share : shares[communicator.rank()]) {
        predictor->predict(
            share.micro_batches,
            [&](std::int64_t id, std::span<const float> prediction) {
              std::copy(prediction.begin(), prediction.end(), all.begin() + id * static_cast<std::ptrdiff_t>(width));
            },
            [&] { progress.advance(); });
      }
      return true;
    };
    (void)comm::work_together(communicator, {"predictions", 0, timeout}, work,
                              {.stalled = std::max<std::chrono::milliseconds>(timeout, std::chrono::minutes{1})});
    for (int rank = 0; rank < communicator.size() && communicator.size() > 1; ++rank) {
      for (const auto& share : shares[rank]) {
        const std::size_t b = micro_batch_samples;
        const std::size_t begin = share.micro_batches.front() * b;
        const std::size_t end = std::min((static_cast<std::size_t>(share.micro_batches.back()) + 1) * b, samples);
        const auto rows = std::span(all).subspan(begin * width, (end - begin) * width);
        communicator.broadcast(std::as_writable_bytes(rows), rank, {"predictions", 0, timeout});
      }
    }
  }
  train::require_finite(set, all, "predictions", model.saved().path);
  return read_predictions(model, all, logits);
}

std::vector<SamplePrediction> read_predictions(const train::LoadedModel& model, const std::vector<float>& raw,
                                               bool logits) {
  const std::size_t width = elements(model.prediction_shape());
  std::vector<SamplePrediction> predictions(raw.size() / width);
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    for (const train::ModelOutput& output : model.outputs()) {
      const auto meaning = logits ? ensemble::Meaning::values : ensemble::meaning_of(*output.loss);
      // Of classes for each pixel or token, each has probabilities of its own.
      const bool rows = meaning == ensemble::Meaning::classes && output.shape.size() > 1;
      const std::size_t row = rows ? static_cast<std::size_t>(output.shape.back()) : output.size;
      for (std::size_t at = 0; at < output.size; at += row) {
        auto values = ensemble::read_prediction(meaning, std::span(raw).subspan(i * width + output.first + at, row));
        for (std::size_t n = 0; n < values.size(); ++n) values[n] += output.offset(at + n);
        predictions[i].values.insert(predictions[i].values.end(), values.begin(), values.end());
      }
      predictions[i].probabilities = meaning != ensemble::Meaning::values && model.outputs().size() == 1;
    }
  }
  return predictions;
}

}  // namespace lockstep::cli
