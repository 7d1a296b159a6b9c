// Events: what a run reports about itself, and the schema of each event.
//
// One struct per event. Its `describe` lists the fields in the order in which they are written, each with its unit and
// meaning; the JSON of `--log json` and events.jsonl, the readers of both and docs/events.md are made from it. A field
// that is std::optional is omitted when it has no value.
//
// Events are emitted by the training thread of rank 0 only, and by the supervisor of `lockstep launch`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>

namespace lockstep::events {

using ByRank = std::map<int, double>;          ///< in JSON {"0": 1.5, "1": 1.25}
using ByName = std::map<std::string, double>;  ///< in JSON {"accuracy": 0.97}

enum class Unit : std::uint8_t { none, seconds, bytes, megahertz, joules, samples_per_second };

struct Start {
  static constexpr const char* kName = "start";
  static constexpr const char* kDoc = "Training begins, or begins again after a restart.";
  std::string job;
  std::int64_t ranks = 0, threads = 0, hosts = 0, micro_batches = 0, batch_size = 0;
  std::int64_t parameters = 0, states = 0, steps = 0;
  double epochs = 0;
  std::string device;
  std::int64_t samples = 0, validation_samples = 0;
  std::string fingerprint, exactness;
  double first_micro_batch_seconds = 0;
  std::int64_t arena_bytes = 0;
  double seconds = 0;
  std::string version;
  std::optional<std::string> algorithms, micro_batches_chosen, inputs, index, initialized, weights, plugins,
      higher_is_better, run_directory, data_sha256, sources;
  std::optional<std::int64_t> trained;

  template <class Field>
  static void describe(Field&& field) {
    field("job", &Start::job, "name of the job");
    field("ranks", &Start::ranks, "number of ranks");
    field("threads", &Start::threads, "worker threads of rank 0");
    field("hosts", &Start::hosts, "hosts that the ranks run on");
    field("micro_batches", &Start::micro_batches, "micro-batches that each batch is cut into");
    field("batch_size", &Start::batch_size, "samples of a step, over all ranks");
    field("parameters", &Start::parameters, "elements of all parameters of the model");
    field("trained", &Start::trained, "where some are frozen: elements of those that are trained");
    field("states", &Start::states, "elements of its states, such as running means");
    field("steps", &Start::steps, "steps of the whole job");
    field("epochs", &Start::epochs, "the same in passes over the training set");
    field("device", &Start::device, "what rank 0 computes on, and with which libraries");
    field("samples", &Start::samples, "samples of the training set");
    field("validation_samples", &Start::validation_samples, "samples of the validation set; 0: there is none");
    field("fingerprint", &Start::fingerprint, "hash of what the kernels of all ranks compute");
    field("exactness", &Start::exactness, "\"bitwise\", or what is promised instead");
    field("first_micro_batch_seconds", &Start::first_micro_batch_seconds,
          "time that the check of the job's own kernels took", Unit::seconds);
    field("arena_bytes", &Start::arena_bytes, "memory for the activations and gradients of a micro-batch", Unit::bytes);
    field("seconds", &Start::seconds, "time that the set-up took", Unit::seconds);
    field("version", &Start::version, "version of lockstep");
    field("run_directory", &Start::run_directory,
          "where checkpoints, events and the rest of the run are, as the job says it; absent with `checkpoint: never`");
    field("plugins", &Start::plugins, "the plugins of the job, with the first digits of their files' SHA-256");
    field("higher_is_better", &Start::higher_is_better,
          "those of the job's metrics of which more is better, if it has any: \"accuracy f1\"");
    field("algorithms", &Start::algorithms, "algorithms that libraries chose for kernels, a layer per line");
    field("micro_batches_chosen", &Start::micro_batches_chosen,
          "why there are that many micro-batches, where the job does not say");
    field("inputs", &Start::inputs, "on GPUs: where the inputs of a step are prepared");
    field("initialized", &Start::initialized,
          "with `initialize`, where the run begins: which tensors have values of the file");
    field("weights", &Start::weights, "with weights of samples, how the loss counts them");
    field("data_sha256", &Start::data_sha256,
          "hash of what training and validation samples are of, before any are held out or drawn again");
    field(
        "sources", &Start::sources,
        "files and folders that training and validation samples are read from, one per line, each after a hash of what "
        "it holds, whatever settings it is read with");
    field("index", &Start::index, "whether the index of the data set was read (\"cached\") or built (\"made\")");
  }
};

/// If the model is cut into parts: one per part, after `start`.
struct Part {
  static constexpr const char* kName = "part";
  static constexpr const char* kDoc = "A part of a model that is cut into parts; one event per part, after `start`.";
  std::int64_t part = 0, parts = 0;
  std::string ranks, first, last;
  std::int64_t parameters = 0;

  template <class Field>
  static void describe(Field&& field) {
    field("part", &Part::part, "number of the part, from 0");
    field("parts", &Part::parts, "how many parts there are");
    field("ranks", &Part::ranks, "the ranks that have it: \"0 1 2\"");
    field("first", &Part::first, "name of its first layer");
    field("last", &Part::last, "name of its last layer");
    field("parameters", &Part::parameters, "elements of its parameters; what parts share is in each of them");
  }
};

/// One for each rank on a GPU, after `start`.
struct Gpu {
  static constexpr const char* kName = "gpu";
  static constexpr const char* kDoc = "The GPU of a rank; one event per rank, after `start`.";
  std::int64_t rank = 0;
  std::string host, model;
  std::int64_t memory_bytes = 0;
  std::string compute_capability;
  std::int64_t multiprocessors = 0, clock_mhz = 0, memory_clock_mhz = 0;
  std::string pci_bus, driver;
  std::optional<std::string> driver_version;

  template <class Field>
  static void describe(Field&& field) {
    field("rank", &Gpu::rank, "the rank that computes on it");
    field("host", &Gpu::host, "the host that it is in");
    field("model", &Gpu::model, "name of the model");
    field("memory_bytes", &Gpu::memory_bytes, "size of its memory", Unit::bytes);
    field("compute_capability", &Gpu::compute_capability, "such as \"9.0\"");
    field("multiprocessors", &Gpu::multiprocessors, "number of streaming multiprocessors");
    field("clock_mhz", &Gpu::clock_mhz, "highest clock of the multiprocessors; 0: not known", Unit::megahertz);
    field("memory_clock_mhz", &Gpu::memory_clock_mhz, "highest clock of the memory; 0: not known", Unit::megahertz);
    field("pci_bus", &Gpu::pci_bus, "PCI address");
    field("driver", &Gpu::driver, "newest CUDA version that the driver supports");
    field("driver_version", &Gpu::driver_version, "the driver's own version, where NVML reports it");
  }
};

struct Step {
  static constexpr const char* kName = "step";
  static constexpr const char* kDoc = "A training step is done.";
  std::int64_t step = 0, epoch = 0;
  double loss = 0, learning_rate = 0;
  ByName metrics;
  double samples_per_second = 0, data_wait_seconds = 0, seconds = 0;
  std::optional<double> gradient_norm, loss_scale;
  std::optional<bool> skipped;
  /// Events of steps stay short, however many ranks there are: tables have this many rows at most, of the ranks with
  /// the largest values.
  static constexpr std::size_t kMostRanks = 16;
  std::optional<ByRank> micro_batch_seconds, energy_joules;
  std::optional<ByName> micro_batch_seconds_of_all;
  std::optional<double> energy_joules_of_all;

  template <class Field>
  static void describe(Field&& field) {
    field("step", &Step::step, "number of the step, from 1");
    field("epoch", &Step::epoch, "number of the epoch, from 1");
    field("loss", &Step::loss, "mean loss of the batch");
    field("learning_rate", &Step::learning_rate, "learning rate of the step");
    field("metrics", &Step::metrics, "the job's metrics on the batch");
    field("samples_per_second", &Step::samples_per_second, "mean rate since the start", Unit::samples_per_second);
    field("data_wait_seconds", &Step::data_wait_seconds, "time that rank 0 waited for input since the step before",
          Unit::seconds);
    field("seconds", &Step::seconds, "time since the first step of this start began", Unit::seconds);
    field("gradient_norm", &Step::gradient_norm, "with `clip_norm`: L2 norm of the gradient before clipping");
    field("loss_scale", &Step::loss_scale, "with `precision: fp16`: scale that the step was computed with");
    field("skipped", &Step::skipped, "with `precision: fp16`: whether the update was skipped");
    field("micro_batch_seconds", &Step::micro_batch_seconds,
          "on several ranks: mean compute time of a micro-batch, on the slowest 16 ranks at most", Unit::seconds);
    field("micro_batch_seconds_of_all", &Step::micro_batch_seconds_of_all,
          "the same over all ranks: \"min\", \"median\", \"p95\" and \"max\"", Unit::seconds);
    field("energy_joules", &Step::energy_joules,
          "energy that GPUs have used since the start, at most those 16 that have used most", Unit::joules);
    field("energy_joules_of_all", &Step::energy_joules_of_all, "the sum over all GPUs", Unit::joules);
  }
};

struct Evaluation {
  static constexpr const char* kName = "eval";
  static constexpr const char* kDoc = "The model was evaluated.";
  std::int64_t step = 0;
  std::string set;
  double loss = 0;
  ByName metrics;

  template <class Field>
  static void describe(Field&& field) {
    field("step", &Evaluation::step, "steps done so far");
    field("set", &Evaluation::set, "name of the set: \"validation\"");
    field("loss", &Evaluation::loss, "mean loss over the set");
    field("metrics", &Evaluation::metrics, "the job's metrics over the set");
  }
};

struct Checkpoint {
  static constexpr const char* kName = "checkpoint";
  static constexpr const char* kDoc = "A checkpoint is committed.";
  std::int64_t step = 0;
  std::string path;
  double seconds = 0, blocked_seconds = 0;
  std::int64_t bytes = 0;
  std::optional<std::string> best;

  template <class Field>
  static void describe(Field&& field) {
    field("step", &Checkpoint::step, "steps done when it was taken");
    field("path", &Checkpoint::path, "its directory");
    field("seconds", &Checkpoint::seconds, "time from its beginning until it was committed", Unit::seconds);
    field("blocked_seconds", &Checkpoint::blocked_seconds, "part of it for which training was blocked", Unit::seconds);
    field("bytes", &Checkpoint::bytes, "its size", Unit::bytes);
    field("best", &Checkpoint::best, "the metric by which it is the best so far");
  }
};

struct Copy {
  static constexpr const char* kName = "copy";
  static constexpr const char* kDoc =
      "A checkpoint is copied to an object store, or fetched from it (checkpoint.copy_to).";
  std::int64_t step = 0;
  std::string path;
  bool fetched = false;
  double seconds = 0;
  std::int64_t bytes = 0;

  template <class Field>
  static void describe(Field&& field) {
    field("step", &Copy::step, "steps done when the checkpoint was taken");
    field("path", &Copy::path, "of the copy");
    field("fetched", &Copy::fetched, "true: it was fetched into the run directory, which had no checkpoint");
    field("seconds", &Copy::seconds, "time that it took", Unit::seconds);
    field("bytes", &Copy::bytes, "its size", Unit::bytes);
  }
};

struct Goodput {
  static constexpr const char* kName = "goodput";
  static constexpr const char* kDoc =
      "Where the time since the first start of the run has gone, as rank 0 sees it; from time to time, and at the end.";
  std::int64_t step = 0;
  double useful_seconds = 0, repeated_seconds = 0, checkpoint_seconds = 0, data_wait_seconds = 0, peer_wait_seconds = 0,
         restart_seconds = 0;

  template <class Field>
  static void describe(Field&& field) {
    field("step", &Goodput::step, "steps done so far");
    field("useful_seconds", &Goodput::useful_seconds, "steps done for the first time, and evaluations", Unit::seconds);
    field("repeated_seconds", &Goodput::repeated_seconds, "steps that had been done, and were lost", Unit::seconds);
    field("checkpoint_seconds", &Goodput::checkpoint_seconds, "training stood while a checkpoint was taken",
          Unit::seconds);
    field("data_wait_seconds", &Goodput::data_wait_seconds, "rank 0 waited for its input", Unit::seconds);
    field("peer_wait_seconds", &Goodput::peer_wait_seconds, "rank 0 waited for other ranks", Unit::seconds);
    field("restart_seconds", &Goodput::restart_seconds,
          "from the last sign of life before a restart to the next step, and the first set-up", Unit::seconds);
  }
};

struct Balance {
  static constexpr const char* kName = "balance";
  static constexpr const char* kDoc = "Micro-batches move between ranks.";
  std::int64_t step = 0;
  std::string reason, evidence;
  ByRank shares_by_rank;
  std::int64_t micro_batches_moved = 0;
  std::optional<ByRank> micro_batch_seconds_by_rank;
  std::optional<double> reduce_seconds, predicted_before_seconds, predicted_seconds, measured_seconds;

  template <class Field>
  static void describe(Field&& field) {
    field("step", &Balance::step, "steps done when the assignment changes");
    field("reason", &Balance::reason, "why they move");
    field("evidence", &Balance::evidence, "what the speeds of the ranks are based on");
    field("shares_by_rank", &Balance::shares_by_rank, "micro-batches that each rank computes from now on");
    field("micro_batches_moved", &Balance::micro_batches_moved, "micro-batches that change their rank");
    field("micro_batch_seconds_by_rank", &Balance::micro_batch_seconds_by_rank, "compute time of a micro-batch",
          Unit::seconds);
    field("reduce_seconds", &Balance::reduce_seconds, "time of a step's all-reduce that compute does not hide",
          Unit::seconds);
    field("predicted_before_seconds", &Balance::predicted_before_seconds,
          "predicted time of a step with the old assignment", Unit::seconds);
    field("predicted_seconds", &Balance::predicted_seconds, "predicted time of a step with the new assignment",
          Unit::seconds);
    field("measured_seconds", &Balance::measured_seconds, "measured time of a step with the old assignment",
          Unit::seconds);
  }
};

struct BadSample {
  static constexpr const char* kName = "bad_sample";
  static constexpr const char* kDoc = "A sample could not be decoded and is replaced; one event for each such sample.";
  std::int64_t step = 0;
  std::string set;
  std::int64_t sample = 0;
  std::string name;
  std::int64_t replaced_by = 0;
  std::string replaced_by_name, message;

  template <class Field>
  static void describe(Field&& field) {
    field("step", &BadSample::step, "steps done so far");
    field("set", &BadSample::set, "the set that it belongs to");
    field("sample", &BadSample::sample, "its number in the set");
    field("name", &BadSample::name, "its name, such as a file's");
    field("replaced_by", &BadSample::replaced_by, "number of the sample that is used instead");
    field("replaced_by_name", &BadSample::replaced_by_name, "name of the sample that is used instead");
    field("message", &BadSample::message, "what is wrong with it, as a sentence");
  }
};

/// Emitted when rank 0 resumes (`step`, `path`), or by the supervisor (all but `path`).
struct Restart {
  static constexpr const char* kName = "restart";
  static constexpr const char* kDoc =
      "A run resumes from a checkpoint (`step`, `path`), or the supervisor starts its ranks again (all but `path`).";
  std::optional<std::string> reason, message;
  std::optional<std::int64_t> rank;
  std::optional<std::string> host;
  std::int64_t step = 0;
  std::optional<std::string> path;
  std::optional<std::int64_t> attempt;
  std::optional<double> after_seconds;

  template <class Field>
  static void describe(Field&& field) {
    field("reason", &Restart::reason,
          "\"death\", \"hang\", \"error\", \"mpirun\", \"resize\", or \"given up\": no restart follows");
    field("message", &Restart::message,
          "what happened, as a sentence; with `path`, the settings that are new from here on");
    field("rank", &Restart::rank, "the rank that it happened to; -1: none in particular");
    field("host", &Restart::host, "host of that rank");
    field("step", &Restart::step, "steps done so far");
    field("path", &Restart::path, "the checkpoint that the run resumes from");
    field("attempt", &Restart::attempt, "number of the attempt that ended");
    field("after_seconds", &Restart::after_seconds, "time until the ranks are started again", Unit::seconds);
  }
};

struct Warning {
  static constexpr const char* kName = "warning";
  static constexpr const char* kDoc = "Something a person should know; the run goes on.";
  std::string message;

  template <class Field>
  static void describe(Field&& field) {
    field("message", &Warning::message, "one sentence");
  }
};

struct Launch {
  static constexpr const char* kName = "launch";
  static constexpr const char* kDoc = "The supervisor starts the ranks of an attempt.";
  std::int64_t attempt = 0, ranks = 0;
  std::string on;

  template <class Field>
  static void describe(Field&& field) {
    field("attempt", &Launch::attempt, "number of the attempt in this run directory, from 1");
    field("ranks", &Launch::ranks, "number of ranks");
    field("on", &Launch::on, "hosts and their ranks: \"node1:4,node2:4\"");
  }
};

struct End {
  static constexpr const char* kName = "end";
  static constexpr const char* kDoc = "The run ends in order.";
  std::string outcome;
  std::int64_t steps = 0, samples = 0;
  double seconds = 0, samples_per_second = 0;
  std::optional<double> loss;
  ByName metrics;
  std::optional<ByName> best;
  std::optional<std::int64_t> evaluations_since_best;
  ByName phases;
  bool interrupted = false;
  std::string parameters_sha256;
  ByRank micro_batches_by_rank, bytes_sent_by_rank, bytes_by_formula_by_rank, compute_seconds_by_rank,
      bytes_read_by_rank;
  std::optional<ByRank> fetched_parameter_bytes_by_rank;
  std::optional<ByRank> peak_memory_bytes_by_rank;
  ByName prefetch;
  std::int64_t sample_cache_bytes = 0;
  std::optional<std::string> checkpoint;
  std::optional<std::int64_t> checkpoints_failed;
  std::optional<ByRank> energy_joules_by_rank;
  std::optional<ByRank> busy_seconds_by_rank, data_wait_seconds_by_rank, waited_seconds_by_rank,
      held_up_seconds_by_rank, reduce_seconds_by_rank, update_seconds_by_rank, part_wait_seconds_by_rank;
  std::optional<std::int64_t> share_moves;

  template <class Field>
  static void describe(Field&& field) {
    field("outcome", &End::outcome, "\"done\", \"stopped early\", \"interrupted\" or \"already finished\"");
    field("steps", &End::steps, "steps done in all, also before a restart");
    field("samples", &End::samples, "samples trained on since this start");
    field("seconds", &End::seconds, "time from the first step of this start to the end of the last one", Unit::seconds);
    field("samples_per_second", &End::samples_per_second, "mean rate since the start", Unit::samples_per_second);
    field("loss", &End::loss, "loss of the last step");
    field("metrics", &End::metrics, "loss and metrics of the last evaluation");
    field("best", &End::best, "with early_stop: its metric in the best evaluation");
    field("evaluations_since_best", &End::evaluations_since_best,
          "with early_stop: how many evaluations were after it");
    field("phases", &End::phases,
          "where the time of rank 0 went, from the first step to the end, the last evaluation and checkpoint included; "
          "\"other\" is what lies between phases",
          Unit::seconds);
    field("interrupted", &End::interrupted, "whether a signal or a stop request ended the run");
    field("parameters_sha256", &End::parameters_sha256, "hash of the model's parameters");
    field("micro_batches_by_rank", &End::micro_batches_by_rank, "micro-batches of each rank in the last step");
    field("bytes_sent_by_rank", &End::bytes_sent_by_rank,
          "gradients and parameters sent to other ranks, and of a model in parts activations and their gradients",
          Unit::bytes);
    field("bytes_by_formula_by_rank", &End::bytes_by_formula_by_rank, "the same as predicted by the communication plan",
          Unit::bytes);
    field("fetched_parameter_bytes_by_rank", &End::fetched_parameter_bytes_by_rank,
          "with sharding: parameters on several hosts: parameters sent to hosts that fetched them, beside what is sent "
          "by the plan",
          Unit::bytes);
    field("compute_seconds_by_rank", &End::compute_seconds_by_rank, "compute time, added up over workers",
          Unit::seconds);
    field("bytes_read_by_rank", &End::bytes_read_by_rank, "bytes read from the files of the data set", Unit::bytes);
    field("peak_memory_bytes_by_rank", &End::peak_memory_bytes_by_rank,
          "most memory that the process has had, pages that it shares with other ranks among them", Unit::bytes);
    field("prefetch", &End::prefetch, "threads and depth of rank 0's prefetcher");
    field("sample_cache_bytes", &End::sample_cache_bytes, "memory of rank 0's cache of decoded samples", Unit::bytes);
    field("checkpoint", &End::checkpoint, "the newest checkpoint");
    field("checkpoints_failed", &End::checkpoints_failed, "checkpoints that could not be written");
    field("energy_joules_by_rank", &End::energy_joules_by_rank, "energy that GPUs used since the start", Unit::joules);
    field("busy_seconds_by_rank", &End::busy_seconds_by_rank,
          "on several ranks, as all that follow: compute time of a worker", Unit::seconds);
    field("data_wait_seconds_by_rank", &End::data_wait_seconds_by_rank, "time that it waited for input", Unit::seconds);
    field("waited_seconds_by_rank", &End::waited_seconds_by_rank, "time that it waited for slower ranks",
          Unit::seconds);
    field("held_up_seconds_by_rank", &End::held_up_seconds_by_rank, "time that other ranks waited for it",
          Unit::seconds);
    field("reduce_seconds_by_rank", &End::reduce_seconds_by_rank, "time of the all-reduce that compute did not hide",
          Unit::seconds);
    field("update_seconds_by_rank", &End::update_seconds_by_rank, "time of the optimizer's updates", Unit::seconds);
    field("part_wait_seconds_by_rank", &End::part_wait_seconds_by_rank,
          "of a model in parts: time that a worker waited for activations and gradients of other parts", Unit::seconds);
    field("share_moves", &End::share_moves, "how often micro-batches moved between ranks");
  }
};

using Event = std::variant<Start, Part, Gpu, Step, Evaluation, Checkpoint, Copy, Goodput, Balance, BadSample, Restart,
                           Warning, Launch, End>;

/// Receives the events of a run; called by one thread.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void event(const Event& event) = 0;
};

}  // namespace lockstep::events
