// What ranks compare before the first step, and what checkpoints store of it: job, data, program, plugins, fingerprint,
// and the result of the first micro-batch of the first step.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "data/input/prepared_data.hpp"
#include "lockstep/communicator.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "run/checkpoint/manifest.hpp"
#include "run/train/run_context.hpp"
#include "step/exec/executor.hpp"

namespace lockstep::train {

struct StartFact {
  std::string name;         ///< "job", "data set", "program", "fingerprint"
  std::string value;        ///< a digest, or a short text
  std::string remedy;       ///< what to try when it differs
  bool bits_only = false;   ///< may differ if the job does not require exact bits
  std::string detail = {};  ///< reported with a value that differs, but not compared
  bool of_host = true;      ///< a host may be to blame if it differs: files or a processor of its own
};

/// Collective: every rank passes the same names. Throws an error that names the rank and host whose value differs from
/// the most common one: UnfitHosts if only whole hosts differ and may be to blame, else Error(usage). If
/// `exact_required` is false, differing `bits_only` facts are returned as warnings instead.
std::vector<std::string> compare_start(const std::vector<StartFact>& facts, bool exact_required,
                                       Communicator& communicator, std::chrono::milliseconds timeout);

/// The progress of a run that has done no step yet. `algorithms`: of its kernels (Executor::algorithms()). Compares
/// job, data, program, plugins and fingerprint between the ranks; throws as compare_start() does. If only fingerprints
/// differ and the job does not require exact bits, it warns and records that in `exactness`.
[[nodiscard]] checkpoint::Progress begin_progress(const RunContext& run, const input::PreparedData& data,
                                                  const std::vector<std::string>& algorithms);

/// Collective: compares in the same way one more thing that the bits depend on: `value`, shorter than 256 characters.
void compare_bits(const RunContext& run, const std::string& name, const std::string& value,
                  checkpoint::Progress& progress);

/// Values of `exactness` in the start event and in checkpoints.
inline constexpr const char* kBitwise = "bitwise";
inline constexpr const char* kNotBitwise = "exact gradient, not bitwise";
inline constexpr const char* kAllReduce = "plain all-reduce";

/// Collective, after begin_progress(): adds the hash of micro-batch 0 of step 0 (hash_of_micro_batch()), with its
/// samples as this rank reads them, to the fingerprint of `progress`, and compares it between the ranks as
/// begin_progress() compares the rest. Returns the seconds that this rank computed. Skipped with `exact: never`, where
/// there is nothing to compare, and on a GPU, whose memory is planned to the last MiB without it.
double compare_first_micro_batch(const RunContext& run, const input::PreparedData& data, const Graph& graph,
                                 const exec::ExecutorOptions& how, checkpoint::Progress& progress);

/// If the two fingerprints agree, the more complete one, else nullopt. One may lack the first micro-batch, which no
/// rank can compute if the model is cut into parts; then only the rest is compared.
[[nodiscard]] std::optional<std::string> agreed_fingerprint(const std::string& one, const std::string& other);

/// A fingerprint as of a run that cannot compute the first micro-batch.
[[nodiscard]] std::string without_first_micro_batch(const std::string& fingerprint);

}  // namespace lockstep::train
