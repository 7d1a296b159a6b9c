// manifest.json: the commit of a checkpoint. It has what the run needs to resume, the list of tensors, the location of
// each piece, and the SHA-256 of every byte. docs/checkpoints.md describes the format.
//
// Format 2. Format 1 (no `tensors`; `sha256` by file) can still be read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/schedule.hpp"
#include "lockstep/tensor.hpp"
#include "step/optim/loss_scaling.hpp"

namespace lockstep::checkpoint {

/// The best value of a metric in any evaluation.
struct BestValue {
  std::string metric;  ///< empty: not evaluated yet
  double value = 0;
};

/// The job with which a run trained up to a step, before it went on with other settings or another length.
struct EarlierSettings {
  std::int64_t until = 0;  ///< steps done with them
  std::string job;         ///< in canonical form; names the run that it was
};

struct Progress {
  std::int64_t step = 0;  ///< steps done
  std::int64_t samples = 0;
  std::uint64_t seed = 0;
  std::int64_t micro_batches = 0;
  std::string job_digest, job;                    ///< in canonical form
  std::vector<EarlierSettings> earlier_settings;  ///< in order; empty: `job` has held since the first step
  std::string data_digest, fingerprint, instructions;
  std::string plugins;    ///< their files and the hashes of these: "libmine.so 0123456789abcdef"; empty: none
  std::string schema;     ///< of the data (data/input/schema.hpp), JSON; empty: the first releases stored none
  std::string exactness;  ///< "bitwise" as long as all steps were computed under one fingerprint
  BestValue best;         ///< of `checkpoint.best`
  BestValue stop_best;    ///< of `early_stop.metric`
  std::int64_t evaluations_without_improvement = 0;
  BestValue schedule_best;  ///< of the metric that the schedule follows
  ScheduleMemory schedule_memory;
  bool finished = false;                  ///< ended by early stopping or a callback, before the last step
  double learning_rate_factor = 1;        ///< set by a callback
  std::map<std::string, double> metrics;  ///< of the last evaluation
  bool evaluation_due = false;            ///< the evaluation after this step was stopped, and is yet to be made
  optim::LossScale loss_scale;
  std::int64_t averaged = 0;  ///< weights that the average has taken (AverageOptions)
  /// Anything else that a run needs to find again, by name: class names, statistics, micro-batch counts. Stored
  /// unchanged.
  std::map<std::string, std::string> metadata;
};

inline constexpr int kCheckpointFormat = 2;

/// Elements [begin, end) of a tensor, row-major, in a file. A whole tensor has one piece, under its own name.
struct SavedPiece {
  std::string file;
  std::int64_t begin = 0, end = 0;
  std::string sha256;  ///< of its bytes; empty in format 1
};

struct SavedTensor {
  std::string name;  ///< "<parameter>", "<state>" or "<parameter>:<optimizer's state>"
  Shape shape;
  std::vector<SavedPiece> pieces;  ///< in order, without holes
};

struct SavedFile {
  std::uint64_t bytes = 0;
  std::string header_sha256;  ///< of the header: the 8 bytes of length and the JSON
  std::string sha256;         ///< of the whole file; format 1 only
};

struct Manifest {
  int format = kCheckpointFormat;
  Progress progress;
  std::map<std::string, SavedFile> files;
  std::vector<SavedTensor> tensors;
};

/// Name of part of a tensor in its file: "conv.weight[0:4096]".
[[nodiscard]] std::string slice_name(const std::string& tensor, std::int64_t begin, std::int64_t end);
/// Name of a piece: slice_name(), or the tensor's own name if the piece is the whole tensor.
[[nodiscard]] std::string piece_name(const SavedTensor& tensor, const SavedPiece& piece);

/// The text of manifest.json; the last line holds the SHA-256 of everything before it.
[[nodiscard]] std::string to_text(const Manifest& manifest);

/// Throws Error(data) that begins with `path` and says what is wrong; Error(usage) if a newer lockstep wrote the
/// manifest, so that it is not mistaken for a damaged one. For format 1, the list of tensors is empty.
[[nodiscard]] Manifest parse_manifest(std::string_view text, const std::string& path);

}  // namespace lockstep::checkpoint
