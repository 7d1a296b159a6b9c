// The fingerprint: what the bits of a run depend on besides its job and data. It consists of a hash of what the
// compiled kernels compute on a fixed input, forward and backward, the library algorithms that the job's own kernels
// chose, hashes of what other libraries compute, and the versions of oneDNN and of lockstep. Names of instruction sets
// would not suffice: kernels are also chosen, and matrices cut into blocks, by cache sizes. A run adds the hash of its
// own first micro-batch (start_check.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/graph.hpp"
#include "step/exec/device.hpp"
#include "step/exec/executor.hpp"

namespace lockstep::train {

/// Trains micro-batch 0 of step 0 from the graph's initial values for `seed`, and returns 16 hexadecimal digits over
/// its loss, gradients and statistics. `executor`: of `graph`, on `device`. Allocates memory for the parameters and
/// their gradients while it runs. `loss_scale`: see exec::Step.
[[nodiscard]] std::string hash_of_micro_batch(exec::Executor& executor, const Graph& graph, const exec::Device& device,
                                              std::uint64_t seed, InputSource& source, float loss_scale = 1);

struct Fingerprint {
  std::string kernels;       ///< 16 hexadecimal digits
  std::string libraries;     ///< "oneDNN 2.6.3"; for a GPU also its model
  std::string version;       ///< of lockstep
  std::string math, jpeg;    ///< of library_results.hpp
  std::string module;        ///< the build of lockstep's GPU module; empty: it is not loaded
  std::string builds;        ///< library_builds(); reported, but not compared
  std::string algorithms;    ///< digest_of() the algorithms of the job's kernels; empty: there was nothing to choose
  std::string instructions;  ///< the instruction set that oneDNN dispatches to, or "sm_90"; reported, but not compared

  /// "kernels 0123456789abcdef, oneDNN 2.6.3, math 01234567, jpeg 89abcdef, lockstep 0.1.0": stored in checkpoints and
  /// compared between ranks.
  std::string text() const;
  /// "avx2; libdnnl 0a1b2c, libm 607182": reported with a fingerprint that differs, to show why.
  std::string detail() const;
};

/// 16 hexadecimal digits of Executor::algorithms(); empty for none.
[[nodiscard]] std::string digest_of(const std::vector<std::string>& algorithms);

/// What differs between two fingerprints, each followed by its detail(): in two lines, of which each begins with a line
/// break: "then: libm d6e6f9", "now: libm 3a4b5c".
[[nodiscard]] std::string differences(const std::string& then, const std::string& now);

/// Trains a small net for one step, on one worker; takes some milliseconds. `precision`: the job's. The net is trained
/// in bf16 if the CPU multiplies it natively, else in float32, whose kernels then compute everything.
[[nodiscard]] Fingerprint take_fingerprint(const exec::Device& device, DType precision = DType::f32);

/// "libdnnl 0a1b2c, libjpeg 3d4e5f, libm 607182, libpng16 93a4b5, libz c6d7e8": names, sorted, each with the first
/// digits of its build id (the GNU build id in the library's notes, or the SHA-256 of its file if it has none). Covers
/// oneDNN, the C library's math, the image decoders (and zlib, which PNG uses), and lockstep's own GPU module. NVIDIA's
/// libraries are identified by their versions (DeviceInfo::libraries).
[[nodiscard]] std::string library_builds();

}  // namespace lockstep::train
