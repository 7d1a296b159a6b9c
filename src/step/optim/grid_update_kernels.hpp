// The update's kernels, launched as grids of device/gpu/grid.hpp.
#pragma once

#include <optimizer_list.hpp>

#include "device/gpu/grid.hpp"
#include "step/optim/adafactor_step_kernels.hpp"
#include "step/optim/matrix_kernels.hpp"
#include "step/optim/newton_schulz_grid.hpp"
#include "step/optim/trust_kernels.hpp"
#include "step/optim/update_kernels.hpp"

namespace lockstep::optim {

template <class Grid>
class GridUpdateKernels final : public UpdateKernels {
 public:
  void launch(GpuStream* stream, std::int64_t n, const GatherPartsFunctor& functor) const override {
    Grid::each(stream, n / kPack, functor);
  }
  void launch(GpuStream* stream, std::int64_t n, const SquaresFunctor& functor) const override {
    Grid::rows(stream, n, functor);
  }
  void launch(GpuStream* stream, std::int64_t n, const SumSquaresFunctor& functor) const override {
    Grid::each(stream, n, functor);
  }
  void launch(GpuStream* stream, std::int64_t n, const ClipFunctor& functor) const override {
    Grid::each(stream, n, functor);
  }
  void launch(GpuStream* stream, std::int64_t n, const BlendFunctor& functor) const override {
    Grid::each(stream, n, functor);
  }

  void launch(GpuStream* stream, std::int64_t n, const AverageFunctor& functor) const override {
    Grid::each(stream, n, functor);
  }
  void launch(GpuStream* stream, std::int64_t n, const SwapFunctor& functor) const override {
    Grid::each(stream, n, functor);
  }

  void launch_optimizer(GpuStream* stream, std::int64_t n, const UpdateOperands& of, const std::string& name,
                        const Attributes& settings, const UpdateStep& step) const override {
    for_formula(name, [&]<class Formula>(const Formula* /*type*/) {
      const Formula decayed(settings, step, true), plain(settings, step, false);
      const auto launch_with = [&]<std::size_t... kState>(std::index_sequence<kState...> /*states*/) {
        Grid::each(stream, n / kPack, UpdateFunctor<Formula, kState...>{of, decayed, plain});
      };
      with_states<Formula>(static_cast<std::size_t>(of.state_count), launch_with);
    });
  }

  void launch_measure(GpuStream* stream, std::int64_t chunks, const MeasureOperands& of, const std::string& name,
                      const Attributes& settings, const UpdateStep& step) const override {
    for_trusted(name, [&]<class Formula>(const Formula* /*type*/) {
      const Formula decayed(settings, step, true), plain(settings, step, false);
      const auto launch_with = [&]<std::size_t... kState>(std::index_sequence<kState...> /*states*/) {
        Grid::rows(stream, chunks, MeasureFunctor<Formula, kState...>{of, decayed, plain});
      };
      with_states<Formula>(static_cast<std::size_t>(of.update.state_count), launch_with);
    });
  }
  void launch_trust(GpuStream* stream, std::int64_t tensors, const TrustOperands& of, const std::string& name,
                    const Attributes& settings, const UpdateStep& step) const override {
    for_trusted(name, [&]<class Formula>(const Formula* /*type*/) {
      Grid::rows(stream, tensors, TrustFunctor<Formula>{of, Formula(settings, step, true)});
    });
  }
  void launch_directions(GpuStream* stream, std::int64_t chunks, const MatrixOperands& of, const std::string& name,
                         const Attributes& settings, const UpdateStep& step) const override {
    for_matrices(name, [&]<class Matrix>(const Matrix* /*type*/) {
      Grid::rows(stream, chunks, DirectionFunctor<Matrix>{of, Matrix(settings, step, false)});
    });
  }
  void launch_transform(GpuStream* stream, const MatrixOnGpu& of, const std::string& name,
                        const Attributes& settings) const override {
    for_matrices(name, [&]<class Matrix>(const Matrix* /*type*/) {
      orthogonalize_on<Grid>(stream, of, Matrix::iteration(settings, of.rows, of.columns));
    });
  }
  void launch_matrix_steps(GpuStream* stream, std::int64_t chunks, const MatrixOperands& of, const std::string& name,
                           const Attributes& settings, const UpdateStep& step) const override {
    for_matrices(name, [&]<class Matrix>(const Matrix* /*type*/) {
      const Matrix decayed(settings, step, true), plain(settings, step, false);
      Grid::rows(stream, chunks, MatrixStepFunctor<Matrix>{of, decayed, plain});
    });
  }
  void launch(GpuStream* stream, std::int64_t chunks, const CopyGradientFunctor& functor) const override {
    Grid::rows(stream, chunks, functor);
  }
  void launch(GpuStream* stream, std::int64_t tiles, const TileSquaresFunctor& functor) const override {
    Grid::rows(stream, tiles, functor);
  }
  void launch(GpuStream* stream, std::int64_t strips, const MatrixMomentsFunctor& functor) const override {
    Grid::rows(stream, strips, functor);
  }
  void launch(GpuStream* stream, std::int64_t matrices, const RowMeanFunctor& functor) const override {
    Grid::rows(stream, matrices, functor);
  }
  void launch(GpuStream* stream, std::int64_t chunks, const StepSquaresFunctor& functor) const override {
    Grid::rows(stream, chunks, functor);
  }
  void launch_trust(GpuStream* stream, std::int64_t tensors, const TrustOperands& of,
                    const Adafactor& formula) const override {
    Grid::rows(stream, tensors, TrustFunctor<Adafactor>{of, formula});
  }
  void launch(GpuStream* stream, std::int64_t chunks, const AdafactorUpdateFunctor& functor) const override {
    Grid::rows(stream, chunks, functor);
  }

 private:
  /// Calls call(a null pointer to the formula of the optimizer with this name).
  template <class Call>
  static void for_formula(const std::string& name, const Call& call) {
    for_each_optimizer([&](const char* other, const auto& make) {
      using Optimizer = decltype(make());
      if constexpr (HasFormula<Optimizer>) {
        if (name == other) call(static_cast<const typename Optimizer::Formula*>(nullptr));
      }
    });
  }
  /// The same if it has a trust ratio.
  template <class Call>
  static void for_trusted(const std::string& name, const Call& call) {
    for_formula(name, [&]<class Formula>([[maybe_unused]] const Formula* formula) {
      if constexpr (HasTrust<Formula>) call(formula);
    });
  }
  /// The same with the formula for matrices, if it has one.
  template <class Call>
  static void for_matrices(const std::string& name, const Call& call) {
    for_formula(name, [&]<class Formula>(const Formula* /*type*/) {
      if constexpr (HasMatrices<Formula>) call(static_cast<const typename Formula::Matrix*>(nullptr));
    });
  }
};

}  // namespace lockstep::optim
