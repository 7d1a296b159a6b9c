// The job: all settings of a training run, as plain structs. config fills them from YAML. Most rooms take only the part
// that they need; the loop, the plan, the launcher and what saves or reports the job take it whole.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/attributes.hpp"
#include "lockstep/choices.hpp"

namespace lockstep {

/// Where a value is in the job file; line 0: it is not there (a default).
struct Place {
  std::string file;
  int line = 0;
  int column = 0;
  std::string path;          ///< "job.model.layers[2].conv"
  std::string text() const;  ///< "job.yaml:12:5: job.model.layers[2].conv"
};

/// One entry of `layers:`.
struct LayerOptions {
  std::string op;
  Attributes attributes;
  std::string name;                 ///< empty: "<op><n>", n counting that op from 1
  std::vector<std::string> inputs;  ///< empty: the previous layer; "previous" is a word for it
  std::string block;                ///< Node::block
  std::string part;                 ///< Node::part
  Place place;
};

/// Low-rank adapters of linear layers. With them the rest of the model is frozen, but for what is named.
struct LoraOptions {
  std::int64_t rank = 8;            ///< columns of B, rows of A
  double alpha = 16;                ///< what an adapter adds is multiplied by alpha / rank
  double dropout = 0;               ///< share of the input's elements that an adapter does not see while training
  std::vector<std::string> layers;  ///< glob patterns over names of linear layers
  std::vector<std::string> train;   ///< glob patterns over names of parameters that are trained, too
  Place place;
};

struct ModelOptions {
  std::string zoo;        ///< "resnet"; empty: layers
  Attributes parameters;  ///< of the zoo model
  std::vector<LayerOptions> layers;
  std::vector<std::string> inputs;  ///< features of a sample that feed the model, in order; empty: all but the target
  std::vector<std::string> freeze;  ///< glob patterns over parameter names
  std::optional<LoraOptions> lora = std::nullopt;
  Place place;
};

/// One data set, or a union of several files of one format.
struct SourceOptions {
  SourceKind kind = SourceKind::digits;
  std::vector<std::string> paths;  ///< as written, globs expanded; idx: images then labels may be one glob or a folder
  std::vector<std::string> patterns;        ///< the same before globs were expanded
  std::string labels;                       ///< idx: the label file, if it cannot be found beside the images
  std::int64_t count = 0;                   ///< digits: number of samples; other kinds: 0 = all
  std::int64_t first = 0;                   ///< digits: index of the first digit
  bool pairs = false;                       ///< digits: two digits and whether they are equal (left, right, label)
  bool masks = false;                       ///< digits: also where the ink is (image, mask, label)
  bool same = false;                        ///< digits: with pairs, both are equal, and label is which they are
  bool triplets = false;                    ///< digits: two equal ones and another (anchor, positive, negative,
                                            ///< label)
  SourcePart part = SourcePart::automatic;  ///< idx, cifar
  std::optional<Tokenizer> tokenizer;       ///< text, texts; none: characters, or that of the training set
  std::string tokenizer_file;  ///< text: a tokenizer.json, or a folder with one or with vocab.json and merges.txt;
                               ///< empty: `tokenizer`
  std::int64_t context = 0;    ///< text, tokens: window length; texts: most tokens of a sample; 0: that of the
                               ///< training set
  std::string text_column = "text";    ///< texts: the column or entry of the text
  std::string label_column = "label";  ///< texts: of the class; empty: texts or rows to predict for
  double masked = 0;       ///< text, tokens: share of a window that is hidden and predicted; 0: the next token
                           ///< is predicted instead
  double masked_span = 1;  ///< text, tokens: how many tokens are hidden beside each other, on average
  std::string mask;        ///< csv: the column of masks; empty: none
  std::vector<std::string> classes;  ///< csv: what the numbers of the masks' pixels stand for
  std::vector<std::string> target;   ///< table, csv: columns to predict
  bool targets_apart = false;    ///< of these: several are a feature each, by their names, as a job with several losses
                                 ///< needs them (follows from these); else one vector of numbers, `label`
  bool targets_centred = false;  ///< table, csv: numbers that are far from 0 get Feature::offsets (follows from
                                 ///< normalize_target)
  std::vector<std::string> features;  ///< table: columns to predict from, or patterns of their names; empty: all others
  std::vector<std::string> except;    ///< table: columns that are no features, or patterns of their names
  std::vector<std::string> categorical;               ///< table: columns of numbers that are names of categories
  UnknownCategory unknown = UnknownCategory::refuse;  ///< table: a category that the training set lacks
  std::string weight;                                 ///< table: the column of the rows' weights; empty: none
  std::int64_t window = 0;            ///< table: rows of a sample, of a time series; 0: each row is a sample
  std::vector<std::int64_t> horizon;  ///< with window: of which rows behind it the targets are, ascending from 1
  std::string series, time;           ///< with window: the columns that group and order the rows; empty: none
  std::string weights;                ///< other kinds: a file with the samples' weights; empty: none
  std::string reader;                 ///< own: its name in the registry
  Attributes attributes;              ///< own: what the reader declares
  BadWhenIndexed bad_samples = BadWhenIndexed::refuse;
  Place place;
};

/// One step of augmentation, or, if `always`, of preparation.
struct AugmentOptions {
  std::string name;  ///< flip, crop, resized_crop, resize, rotate, color_jitter, cutout, or a user's own
  Attributes attributes;
  Place place;
};

/// Probabilities that labels are mixed with, of a file that `lockstep ensemble distill` wrote.
struct SoftLabelOptions {
  std::string from;        ///< safetensors file with `probabilities` [samples, classes]
  double weight = 0.9;     ///< of the probabilities; the rest is the label's
  double temperature = 1;  ///< of the probabilities: p^(1 / temperature), normalised
};

/// Training samples are mixed with others of their micro-batch, and so are their labels.
struct MixOptions {
  double mixup = 0;        ///< alpha of the Beta distribution of the share that a sample keeps; 0: never
  double cutmix = 0;       ///< the same, of the area that stays; 0: never
  double probability = 1;  ///< that a sample is mixed
  Place place;
};

/// How much the loss of a training sample counts, by its class.
struct ClassWeightOptions {
  bool balanced = false;                  ///< samples / (classes * samples of the class)
  std::map<std::string, double> by_name;  ///< classes that are not named have 1
  std::vector<double> by_number;
  Place place;
};

/// One of the parts of equal size that a training set is cut into, each a validation set in its turn.
struct Fold {
  std::int64_t number = 0;  ///< from 1
  std::int64_t of = 0;      ///< 0: no fold
};

struct DataOptions {
  SourceOptions train;
  std::optional<SourceOptions> validation, test;
  // Where validation is no source, one of the three:
  double validation_fraction = 0;           ///< of the training set
  Fold validation_fold;                     ///< of the training set
  std::string validation_list;              ///< a file with one sample name or id a line
  std::optional<bool> stratify;             ///< each class apart; none: of a fold, where there are classes
  std::optional<std::uint64_t> split_seed;  ///< of the samples that fraction or fold draw; none: the job's seed
  bool cuts_validation() const { return validation_fraction > 0 || validation_fold.of > 0 || !validation_list.empty(); }
  bool has_validation() const { return validation || cuts_validation(); }
  Resample resample = Resample::never;  ///< of the training set, by the job's seed
  std::optional<SoftLabelOptions> soft_labels;
  std::optional<ClassWeightOptions> class_weights;
  std::vector<AugmentOptions> prepare;  ///< for every sample, training or not: resize
  std::vector<AugmentOptions> augment;  ///< training only
  std::optional<MixOptions> mix;        ///< training only
  bool normalize = true;
  std::vector<double> mean, stddev;  ///< per channel, on the scale 0...1; empty: computed once ("auto")
  bool normalize_target = false;     ///< numbers to predict are learnt with mean 0 and standard deviation 1
  SampleCache cache = SampleCache::memory;
  std::int64_t cache_bytes = std::int64_t{2} << 30;
  BadWhenRead bad_samples = BadWhenRead::stop;
  int threads = 0;  ///< 0: tuned while running
  int depth = 0;    ///< 0: tuned while running
};

/// Parameters that are updated otherwise than the optimizer's settings say. One in several groups is of the first.
struct ParameterGroup {
  std::vector<std::string> match;                     ///< glob patterns over parameter names
  double rate = 1;                                    ///< factor of the learning rate
  std::optional<double> weight_decay = std::nullopt;  ///< of all of them, norms and biases too; none: as without group
  Span freeze_until{0, false};                        ///< of updates, before the first one that changes them
  Place place = {};
};

/// A second set of weights, which averages those that training goes through.
struct AverageOptions {
  double decay = 0;      ///< exponential moving average: the share that it keeps at an update; 0: the mean
  Span start{0, false};  ///< of training, before the first weights that it takes
  Span every{1, false};  ///< from one to the next
  bool evaluate = true;  ///< validation, eval, predict and export use it unless they are told otherwise
};

struct OptimizerOptions {
  std::string kind = "sgd";  ///< sgd, adam, adamw, or a user's own
  Attributes attributes;
  std::vector<ParameterGroup> groups = {};
  std::optional<AverageOptions> average = std::nullopt;
};

/// How the learning rate develops after the warm-up.
struct ScheduleOptions {
  std::string kind = "constant";  ///< constant, steps, linear, cosine, or a user's own
  Attributes attributes;
};

struct LearningRateOptions {
  double peak = 0;  ///< 0: what the optimizer proposes (OptimizerDef::learning_rate); resolved when the job is loaded
  Span warmup;      ///< rises linearly, starting at peak / (steps of warm-up)
  ScheduleOptions schedule;
  std::int64_t reference_batch = 0;  ///< linear scaling: peak is multiplied by batch_size / reference_batch; 0: off
};

struct LossOptions {
  std::string kind = "cross_entropy";
  Attributes attributes;         ///< of the loss op
  std::string target = "label";  ///< the graph input it reads
  // Of several losses:
  std::string name;    ///< before its metrics, "kind/accuracy"; empty in the file: the target's
  std::string output;  ///< the layer whose output it reads; empty: the model's
  double weight = 1;   ///< its factor in their sum
};

struct EvaluateOptions {
  bool never = false;
  Span every{1, true};
};

struct EarlyStopOptions {
  std::string metric;
  std::int64_t patience = 0;  ///< evaluations without improvement
  double min_delta = 0;       ///< by more than this an evaluation must be better to be one
  bool restore_best = false;  ///< what is trained is the best checkpoint, unless another is named
};

struct CheckpointOptions {
  bool never = false;
  Span every{1, true};
  std::int64_t keep = 3;
  std::optional<Span> keep_every;
  std::string best;                    ///< metric; empty: none
  std::int64_t part_bytes = 16 << 20;  ///< of a file; more files let more ranks write
  std::string copy_to;                 ///< s3://bucket/key: copies are made there; empty: none
};

struct InitializeOptions {
  std::string from;               ///< safetensors file, an index of several, a checkpoint or a run's directory
  std::vector<std::string> only;  ///< glob patterns over parameter names; empty: all
  WeightNames names = WeightNames::automatic;
  std::map<std::string, std::string> map;  ///< from names of the model to those of the file, before `names`
};

/// TensorBoard's event files, in `tensorboard` in the run directory.
struct TensorboardOptions {
  bool enabled = false;
  Span histograms{1, true};  ///< of weights and gradients; amount 0: never
  bool images = true;        ///< of inputs and of the first filters
};

struct TelemetryOptions {
  int prometheus_port = 0;                       ///< of local rank 0; 0: off
  std::string prometheus_address = "127.0.0.1";  ///< that ranks listen on
  double linger_seconds = 0;                     ///< at the end, for a last scrape; below 0: as it seems useful
  std::string targets_folder;                    ///< where targets are written, too; empty: nowhere else
  TensorboardOptions tensorboard;
  std::optional<Span> every;  ///< steps in events.jsonl and of TensorBoard's curves; none: fewer and fewer
};

/// For `precision: fp16`. All scales are powers of two.
struct LossScaleOptions {
  std::int64_t fixed = 0;               ///< 0: dynamic
  std::int64_t initial = 65536;         ///< dynamic: the first one
  std::int64_t growth_interval = 2000;  ///< dynamic: successful updates in a row after which the scale doubles
};

struct BalanceOptions {
  BalanceMode mode = BalanceMode::automatic;
  std::map<std::string, double> weights;  ///< by host, or by (part of) a processor model's name
  std::string prometheus;                 ///< URL of a server with metrics of earlier runs
};

/// One of the parts that a model is cut into by hand.
struct PartOptions {
  std::string until;       ///< the block or layer that it ends with; empty: it is the last part
  std::int64_t ranks = 0;  ///< 0: by cost
  Place place;
};

/// How the model is cut into parts, each computed by ranks of its own. Layers may also name their parts.
struct ParallelOptions {
  std::int64_t parts = 1;         ///< number of parts, cut by cost
  std::vector<PartOptions> cuts;  ///< if not empty: these parts, in this order
  bool branches = false;          ///< cuts between branches that do not depend on each other
  std::int64_t in_flight =
      0;  ///< most micro-batches of a part that a worker has between forward and backward; 0: chosen
  Sharding sharding = Sharding::none;
  Place place;  ///< of `parts`
};

struct Job {
  std::string name = "digits";
  std::vector<std::string> plugins;  ///< shared libraries that add to what the rest may name
  std::uint64_t seed = 1;
  ModelOptions model;
  DataOptions data;
  std::int64_t batch_size = 0;
  std::int64_t micro_batches = 0;  ///< 0 in the file: chosen; always set after parsing
  std::int64_t steps = 0;          ///< exactly one of steps and epochs is not 0
  double epochs = 0;
  LossOptions loss;
  std::vector<LossOptions> losses;   ///< several, of one model: instead of `loss`, which is not used then
  std::vector<std::string> metrics;  ///< "accuracy"; of several losses "kind/accuracy"
  /// What each of several losses has on its own ("kind/loss"), and the metrics.
  std::vector<std::string> reported() const;
  OptimizerOptions optimizer;
  LearningRateOptions learning_rate;
  double clip_norm = 0;  ///< 0: off
  Precision precision = Precision::fp32;
  LossScaleOptions loss_scale;
  DeviceChoice device = DeviceChoice::automatic;
  std::vector<std::int64_t> devices;  ///< device: cuda: GPUs of a host's ranks, in order of PCI bus; empty: all visible
                                      ///< ones
  Recompute recompute = Recompute::never;
  bool cuda_graphs = true;  ///< device: cuda: kernels are launched in graphs
  int threads = 0;          ///< 0: auto
  Exactness exact = Exactness::required;
  BalanceOptions balance;
  ParallelOptions parallel;
  EvaluateOptions evaluate;
  std::optional<EarlyStopOptions> early_stop;
  std::optional<InitializeOptions> initialize;
  std::string run_directory;  ///< empty: runs/<name>
  CheckpointOptions checkpoint;
  TelemetryOptions telemetry;
  double timeout_seconds = 60;  ///< deadline of a wait for other ranks
  std::chrono::milliseconds timeout() const {
    return std::chrono::milliseconds(static_cast<std::int64_t>(timeout_seconds * 1000));
  }
  std::int64_t bucket_bytes = 1 << 20;
};

/// A job, and where its settings were written, for messages.
struct JobFile : Job {
  JobFile() = default;
  JobFile(Job job) : Job(std::move(job)) {}  // NOLINT(google-explicit-constructor): one that nobody wrote down
  /// Where `path` ("job.batch_size") is in the file; only the path if it is not there.
  Place place_of(const std::string& path) const;

  std::map<std::string, Place> places;  ///< of what was written
};

/// A job in the form that checkpoints store and that runs are compared by.
struct CanonicalJob {
  std::string text;    ///< the whole job as JSON (so YAML too) with every default filled in
  std::string digest;  ///< sha256 of what the result depends on
};

}  // namespace lockstep
