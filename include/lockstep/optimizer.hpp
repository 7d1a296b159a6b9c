// Optimizers: how gradients change parameters.
//
// An optimizer is elementwise: the new value of an element depends on that element, its gradient and its elements of
// the state tensors, and on nothing else. So it does not matter where parameters are cut for threads and ranks. Loops
// are plain and contraction is off, so SIMD code and its scalar tail round alike. The exception is a trust ratio, by
// which some optimizers scale the rate of a whole parameter: it depends on norms, whose squares are added in an order
// that is fixed. So are the steps of whole matrices (MatrixStep).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/attributes.hpp"
#include "lockstep/registry.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep {

/// What is the same for all elements in one update.
struct UpdateStep {
  double learning_rate = 0;
  std::int64_t update = 0;  ///< counted from 0; fewer than steps if updates were skipped
};

/// Neighbouring elements of one parameter. The gradient is that of the mean loss, after clipping.
struct ParameterRun {
  std::span<float> parameter;
  std::span<const float> gradient;
  std::span<float* const> states;  ///< in the order of OptimizerDef::states; 0 before the first update. One of another
                                   ///< shape than the parameter's: null
  bool decay = false;              ///< whether weight decay applies to this parameter: see OptimizerDef::attributes
  float trust = 1;                 ///< factor of the parameter's rate: see TrustRatio
  std::span<const float> step;     ///< of a matrix: see MatrixStep; empty: it is updated elementwise
};

/// Updates a run. Thread-safe: several threads call it concurrently, for runs that do not overlap.
using ParameterUpdate = std::function<void(const ParameterRun& run)>;

/// Sums of squares over a run.
struct SquareSums {
  double parameter = 0;
  double direction = 0;  ///< of what the trust ratio compares the parameter with
};

/// How an optimizer finds the factor of a parameter's rate from norms of the whole tensor. All runs of a parameter are
/// measured before the first one is updated, after the steps of matrices have been made.
struct TrustRatio {
  /// Updates the run's states, not its parameter, and returns its squares. Thread-safe, like ParameterUpdate.
  std::function<SquareSums(const ParameterRun& run)> measure;
  /// The factor, from both norms, of a parameter of so many elements.
  std::function<float(double parameter, double direction, std::int64_t elements)> ratio;
  bool of_all = false;  ///< false: parameters that do not decay, norms and biases, have the factor 1
};

/// How an optimizer makes the step of a matrix that depends on all of its elements. Both functions are thread-safe,
/// like ParameterUpdate. The update then gets the step, a part of it for each run.
struct MatrixStep {
  /// Updates the run's states, not its parameter, and writes what the step is made of: as many elements as the run's.
  std::function<void(const ParameterRun& run, std::span<float> direction)> measure;
  /// Makes the step of the direction, in place: [rows, columns]. All who have the whole direction get the same bits.
  /// `states`: of the parameter, those of another shape than its own (OptimizerDef::state_shape), which it updates; for
  /// the others null.
  std::function<void(std::span<float> matrix, std::int64_t rows, std::int64_t columns, std::span<float* const> states)>
      transform;
};

inline constexpr std::size_t kMaxOptimizerStates = 4;

class OptimizerDef {
 public:
  static constexpr const char* kNoun = "optimizer";
  std::string name;  ///< "adamw"
  std::string doc;   ///< one line
  int order = 100;   ///< position in messages and on pages; equal ones are sorted by name
  /// An attribute `decay_all` decides whether norms and biases decay too; without it, only the other parameters do.
  std::vector<AttributeSpec> attributes;
  std::vector<AttributeCheck> checks;
  std::string shorthand;        ///< the attribute that a bare value sets; empty: none
  double learning_rate = 0.01;  ///< the peak that a job has by default

  /// Names of the float32 tensors that it keeps for each parameter: "first_moment". At most kMaxOptimizerStates. Not
  /// set: none.
  std::function<std::vector<std::string>(const Attributes& settings)> states;
  /// The shape of a parameter's state, by the state's number: {0} if it has none. Not set: the parameter's. States of
  /// another shape are whole on every rank that has the parameter, and only matrices may have them.
  std::function<Shape(std::size_t state, const Shape& parameter)> state_shape;
  /// One update on the CPU, with everything that is the same for all elements computed once.
  std::function<ParameterUpdate(const Attributes& settings, const UpdateStep& step)> update;
  const char* missing() const { return update ? "" : "update"; }
  /// Not set: all parameters have the factor 1.
  std::function<TrustRatio(const Attributes& settings, const UpdateStep& step)> trust_ratio;
  /// Not set: matrices are updated like all others.
  std::function<MatrixStep(const Attributes& settings, const UpdateStep& step)> matrix_step;
  /// Whether every parameter of several dimensions is a matrix, with a row for each element of the first, or only those
  /// that say so (Value::matrix).
  bool every_matrix = false;
  /// The floats that a step is made with, besides the matrix. Not set: none worth mentioning.
  std::function<std::int64_t(std::int64_t rows, std::int64_t columns)> matrix_scratch;
  /// Floating-point operations of a step. If set, ranks share the work: each step is made by one of them. Not set, or
  /// with state_shape: every rank makes all steps.
  std::function<double(const Attributes& settings, std::int64_t rows, std::int64_t columns)> matrix_operations;
};

using OptimizerRegistry = Registry<OptimizerDef>;

}  // namespace lockstep
