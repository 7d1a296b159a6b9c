// The fingerprint: what the bits of a run depend on beside its job and data. It is the hash of what the compiled
// kernels compute on a fixed input, forward and backward, what the job's own kernels chose of a library's algorithms,
// and the versions and builds of the libraries and of lockstep. Names of instruction sets would not do: kernels are
// also chosen, and matrices cut, by the sizes of caches. A run adds its own first shard (start_check.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exec/device.hpp"
#include "exec/executor.hpp"
#include "lockstep/graph.hpp"

namespace lockstep::train {

/// Trains shard 0 of step 0 from the graph's first values, which `seed` draws, and returns 16 hexadecimal digits over
/// its loss, gradients and statistics. `executor`: of `graph`, on `device`. Takes memory for the parameters and their
/// gradients while it runs. `loss_scale`: of exec::TrainStep.
[[nodiscard]] std::string hash_of_shard(exec::Executor& executor, const Graph& graph, const exec::Device& device,
                                        std::uint64_t seed, InputSource& source, float loss_scale = 1);

struct Fingerprint {
  std::string kernels;       ///< 16 hexadecimal digits
  std::string libraries;     ///< "oneDNN 2.6.3"; of a GPU also its model
  std::string version;       ///< of lockstep
  std::string builds;        ///< library_builds()
  std::string algorithms;    ///< digest_of() what a job's kernels chose; empty: there was nothing to choose
  std::string instructions;  ///< what oneDNN dispatches to, or "sm_90"; reported, but not compared

  /// "kernels 0123456789abcdef, oneDNN 2.6.3, builds 01234567, lockstep 0.1.0": what checkpoints keep and ranks
  /// compare. `builds` is a hash of them.
  [[nodiscard]] std::string text() const;
  /// "avx2; libdnnl 0a1b2c, libm 607182": reported with it where it differs, to see why.
  [[nodiscard]] std::string detail() const;
};

/// 16 hexadecimal digits of Executor::algorithms(); empty for none.
[[nodiscard]] std::string digest_of(const std::vector<std::string>& algorithms);

/// Trains a small net for one step, on one worker; some milliseconds. `precision`: the job's. The net is trained in
/// bf16 where the CPU multiplies it, else in float32, whose kernels compute all else.
[[nodiscard]] Fingerprint take_fingerprint(const exec::Device& device, DType precision = DType::f32);

/// "libdnnl 0a1b2c, libjpeg 3d4e5f, libm 607182, libpng16 93a4b5, libz c6d7e8": the names, sorted, each with the first
/// digits of its build id (the GNU build id that the linker notes in a library; where it has none, the SHA-256 of its
/// file). They are oneDNN, the C library's functions (libm, libmvec), the decoders of images (and zlib, which PNG is
/// made of), and lockstep's own module for GPUs. NVIDIA's libraries are identified by their versions
/// (DeviceInfo::libraries).
[[nodiscard]] std::string library_builds();

}  // namespace lockstep::train
