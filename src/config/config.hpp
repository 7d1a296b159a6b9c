// config: from YAML job files to lockstep::Job, and everything else that follows from the same declarations: the JSON
// Schema, the reference page, overrides from the command line, the canonical form and its digest.
//
// config knows no op, zoo model, loss, metric or optimizer by name: the caller passes in a Catalogue of them. All
// mistakes in a job are thrown together, as one Problems.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/attributes.hpp"
#include "lockstep/error.hpp"
#include "lockstep/job.hpp"

namespace lockstep::config {

/// Something that a job file may name: an op, a zoo model, an optimizer, an augmentation step.
struct NamedAttributes {
  std::string name;
  std::string doc;
  std::string shorthand;  ///< the attribute that a bare value sets (`dropout: 0.2`); empty: none
  std::vector<AttributeSpec> attributes;
  std::vector<AttributeCheck> checks;
  bool takes_inputs = false;      ///< layers: `inputs:` may name more than one
  bool batch_statistics = false;  ///< layers, models: has batch norm, so very small micro-batches cost accuracy
  double learning_rate = 0.01;    ///< optimizers: the peak by default
  bool on_gpus = true;            ///< optimizers: GPUs compute it, too
};

struct Catalogue {
  std::vector<NamedAttributes> layers;  ///< ops usable in `layers:`
  std::vector<NamedAttributes> models;  ///< the zoo
  std::vector<NamedAttributes> losses;
  std::vector<std::string> metrics;  ///< of topK, which takes any K, top5
  std::vector<NamedAttributes> optimizers;
  std::vector<NamedAttributes> schedules;      ///< learning rate schedules
  std::vector<NamedAttributes> augmentations;  ///< `augment:`, training only
  std::vector<NamedAttributes> preparations;   ///< `prepare:`, applied to every sample
  std::vector<NamedAttributes> readers;        ///< kinds of data sources besides the built-in ones
};

struct Problem {
  Place place;
  std::string message;  ///< what was expected, what was found, the nearest known key, what to try
  std::string text() const { return place.text() + ": " + message; }
};

/// what(): all problems in order of their places, one per line.
class Problems : public Error {
 public:
  explicit Problems(const std::vector<Problem>& list);
  /// `code`: instead of `configuration`.
  Problems(const std::vector<Problem>& list, ExitCode code);
  const std::vector<Problem>& list() const { return list_; }

 private:
  std::vector<Problem> list_;
};

/// A shared library that a job names, and where.
struct PluginPath {
  std::string path;
  Place place;
};

/// What a job or sweep file says under `plugins`; of a sweep, what its job says. It is read before anything else of the
/// job, since the catalogue that the rest is read by depends on it. Throws Problems for mistakes in `plugins` alone,
/// and returns nothing where it cannot read the file: load() reports the rest.
[[nodiscard]] std::vector<PluginPath> plugins_of(const std::string& path, const std::vector<std::string>& overrides);
/// Whether some of these overrides set `plugins`.
[[nodiscard]] bool set_plugins(const std::vector<std::string>& overrides);
/// The same as plugins_of() from a string, as load_text().
[[nodiscard]] std::vector<PluginPath> plugins_of_text(const std::string& text, const std::string& file_name,
                                                      const std::vector<std::string>& overrides);

/// Reads a job file. `overrides` are the command line's `key=value` words, keys without the leading `job.`. If
/// `need_data`, files that the job names must exist, and globs are expanded. Throws Problems.
[[nodiscard]] JobFile load(const std::string& path, const std::vector<std::string>& overrides,
                           const Catalogue& catalogue, bool need_data);
/// The same from a string; paths are relative to the folder part of `file_name`.
[[nodiscard]] JobFile load_text(const std::string& text, const std::string& file_name,
                                const std::vector<std::string>& overrides, const Catalogue& catalogue, bool need_data);

/// A job that was made or changed in C++, checked by the rules of a job file, with what is left to be chosen, such as
/// `micro_batches` 0, and with missing attributes of ops and optimizers. Throws Problems, at the places of what was
/// read from a file.
[[nodiscard]] JobFile completed(const JobFile& job, const Catalogue& catalogue);

/// The job of `lockstep train` without a file: the embedded digits job.
[[nodiscard]] JobFile default_job(const std::vector<std::string>& overrides, const Catalogue& catalogue,
                                  bool need_data = true);
[[nodiscard]] std::string default_job_text();

/// Throws Problems, at the place of `micro_batches`, if a job has fewer micro-batches than there are ranks (of a part,
/// if the model is cut into parts).
void check_world_size(const JobFile& job, int ranks);

/// A batch size near the job's that can be cut into more micro-batches, so that work is divided among ranks more
/// finely.
struct FinerBatch {
  std::int64_t batch_size, micro_batches;
};
/// If the job has fewer than 8 micro-batches: the nearest batch size, within a third of the job's, that has 8 or more
/// micro-batches by default; else the one with the most micro-batches, if these are more than the job's. For `lockstep
/// check`.
[[nodiscard]] std::optional<FinerBatch> finer_batch(const Job& job, const Catalogue& catalogue);

/// The most parts that the job's model can be cut into; for branches a large number, since only the graph knows.
[[nodiscard]] std::int64_t max_parts(const Job& job);

/// The number that `micro_batches: auto` has chosen, and what the neighbouring numbers would mean, on one line; empty
/// if the job states a number. If the batch allows only one micro-batch, names a batch size near it that allows more.
[[nodiscard]] std::string explain_micro_batches(const JobFile& job, const Catalogue& catalogue);

/// JSON Schema, draft-07, as indented JSON without a newline at the end. `plugins_known`: those of jobs have added to
/// the catalogue; else whatever a plugin may add to is not checked in a job that has plugins.
[[nodiscard]] std::string schema(const Catalogue& catalogue, bool plugins_known = false);
/// The job file's reference page, in Markdown, without a newline at the end.
[[nodiscard]] std::string reference_markdown(const Catalogue& catalogue);

[[nodiscard]] CanonicalJob canonical(const Job& job, const Catalogue& catalogue);

/// The differences between two canonical forms, only in the keys that the digest counts: "job.optimizer.sgd.momentum:
/// 0.9, now 0.8". What is of another kind is one difference: "job.model: layers, now resnet".
[[nodiscard]] std::vector<std::string> differences(const std::string& text_a, const std::string& text_b);

/// Whether a setting can change between two steps of a run: it shapes no tensor, and which samples a step has does not
/// depend on it. `path`: without "job.", as overrides and differences() write it.
[[nodiscard]] bool can_change_between_steps(std::string_view path);
/// What they are, for messages.
inline constexpr const char* kChangeableSettings =
    "learning_rate, the optimizer's own settings, clip_norm, loss, data.augment and dropout rates";
/// Those of differences() that cannot.
[[nodiscard]] std::vector<std::string> fixed_differences(const std::string& text_a, const std::string& text_b);

/// Twelve digits that runs of this job share, whatever changes between two steps of theirs; of another job, others.
[[nodiscard]] std::string run_identity(const std::string& canonical_text);

/// How long a run is, as its job says it: one of the two, the other is 0.
struct RunLength {
  std::int64_t steps = 0;
  double epochs = 0;
};
/// The length of a saved canonical form, if the two differ in nothing else that the digest counts.
[[nodiscard]] std::optional<RunLength> length_if_else_equal(const std::string& saved, const std::string& now);

}  // namespace lockstep::config
