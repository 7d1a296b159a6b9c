#include "step/optim/cpu_updater.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "core/round_up.hpp"
#include "core/vectorize.hpp"
#include "device/cpu/add.hpp"
#include "device/row_blocks.hpp"
#include "step/optim/elementwise.hpp"
#include "step/optim/matrix_exchange.hpp"

namespace lockstep::optim {

namespace {

constexpr int kChunksPerTask = 16;

LOCKSTEP_VECTORIZED void divide(const float* sum, float count, float* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = sum[i] / count;
}
LOCKSTEP_VECTORIZED void scale(float* values, float factor, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) values[i] *= factor;
}
LOCKSTEP_VECTORIZED void blend(float* state, const float* sum, float momentum, float micro_batches, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) state[i] = (1.0F - momentum) * state[i] + momentum * (sum[i] / micro_batches);
}

LOCKSTEP_VECTORIZED void average(float* average, const float* values, float weight, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) average[i] = averaged(average[i], values[i], weight);
}

// Infinities and NaNs are the values whose exponent bits are all set.
LOCKSTEP_VECTORIZED bool is_finite(const float* values, std::int64_t n) {
  std::uint32_t found = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t missing = ~std::bit_cast<std::uint32_t>(values[i]) & 0x7f800000U;
    found |= (missing - 1U) >> 31;  // 1 only if missing is 0
  }
  return found == 0;
}

LOCKSTEP_VECTORIZED double sum_of_squares(const float* values, std::int64_t n) {
  return optim::sum_of_squares(n, [&](std::int64_t i) LOCKSTEP_INLINE_LAMBDA { return values[i]; });
}

int tasks_for(std::size_t chunks) {
  return divide_up<std::size_t>(chunks, kChunksPerTask);
}

}  // namespace

void CpuUpdater::begin(const Model& model) {
  if (slices_ != nullptr) slices_->gather_first_values(model.parameters);
}

exec::ModelValues CpuUpdater::values(const Model& model) const {
  if (slices_ == nullptr || !slices_->divides_parameters()) return Updater::values(model);
  auto view = std::make_shared<exec::ModelView>(*exec::view_of(model.parameters, model.states));
  view->fetched = slices_->fetched();
  return {model.parameters, model.states, view};
}

const float* CpuUpdater::sum_of(const Use& use) const {
  if (!use.own) return other_parts_->sum(use.number);
  const comm::GradientBuckets::Slot& slot = buckets_.slots[use.number];
  return reducer_.reduced(slot.bucket).data() + slot.offset;
}

void CpuUpdater::gather(std::size_t index, const Scaling& scaling, float* out) const {
  const Chunk& chunk = chunks_[index];
  if (is_frozen(chunk.parameter, scaling.update)) return void(std::fill_n(out, chunk.elements, 0.0F));
  bool first = true;
  for (const Use& use : uses_[chunk.parameter]) {
    const float* sum = sum_of(use) + chunk.first;
    if (first) {
      std::copy_n(sum, chunk.elements, out);
    } else {
      device::add(out, sum, out, chunk.elements);
    }
    first = false;
  }
  divide(out, scaling.divisor, out, chunk.elements);
  if (scaling.clip < 1) scale(out, scaling.clip, chunk.elements);
}

template <class Functor>
void CpuUpdater::for_each_own_chunk(const Functor& functor) const {
  pool_.run(tasks_for(own_chunks_.size()), [&](int /*worker*/, int task) {
    const std::size_t first = static_cast<std::size_t>(task) * kChunksPerTask;
    for (std::size_t i = first; i < std::min(own_chunks_.size(), first + kChunksPerTask); ++i) functor(own_chunks_[i]);
  });
}

template <class Functor>
void CpuUpdater::for_each_own_run(const Model& model, const Functor& functor) const {
  for_each_own_chunk([&](std::size_t i) {
    const Chunk& chunk = chunks_[i];
    alignas(64) Gradient gradient;  // NOLINT(cppcoreguidelines-pro-type-member-init): gather() writes it
    gather(i, scaling_, gradient.data());
    const auto at = [&](const exec::TensorBlock& block) { return block.at(chunk.parameter).data() + chunk.first; };
    std::array<float*, kMaxOptimizerStates> states{};
    for (std::size_t s = 0; s < own_states_; ++s) {
      const exec::TensorBlock& block = model.optimizer[s];
      states.at(s) = block.shape(chunk.parameter) == shape_of(chunk.parameter) ? at(block) : nullptr;
    }
    const std::size_t n = chunk.elements;
    ParameterRun run{.parameter = {at(model.parameters), n},
                     .gradient = {gradient.data(), n},
                     .states = {states.data(), own_states_},
                     .decay = groups_.decays(chunk.parameter)};
    functor(i, run);
  });
}

const exec::TensorBlock& CpuUpdater::gradient() {
  if (!gradient_) gradient_ = make_state();
  for_each_own_chunk(
      [&](std::size_t i) { gather(i, scaling_, gradient_->at(chunks_[i].parameter).data() + chunks_[i].first); });
  return *gradient_;
}

double CpuUpdater::norm_of(std::span<const double> squares) {
  double sum = 0;
  device::for_levels_of(
      squares.data(), std::ssize(squares), 1, &sum, square_levels_.data(),
      [](const double* from, const device::RowBlocks& blocks, double* to) { device::sum_level(from, blocks, 1, to); });
  return std::sqrt(sum);
}

double CpuUpdater::norm(std::uint64_t step) {
  return norm_of(gather_numbers(squares_, step));
}

bool CpuUpdater::overflowed(std::uint64_t step) {
  if (!scales_loss_) return false;
  std::vector<double> finite(finite_.begin(), finite_.end());
  const std::span<const double> all = gather_numbers(finite, step);
  return std::find(all.begin(), all.end(), 0.0) != all.end();
}

// A chunk's gradient is computed from its sums wherever it is needed: for the norm, and again for the update.
UpdateResult CpuUpdater::update(Model& model, double count, const UpdateScalars& scalars) {
  const auto updates = for_groups(scalars, optimizer_.update);
  const std::uint64_t step = scalars.step;
  scaling_ = {.divisor = static_cast<float>(count * scalars.loss_scale), .update = scalars.update};
  if (other_parts_) {
    other_parts_->exchange(step, [&](std::size_t slot) {
      return std::span(sum_of({true, slot}), static_cast<std::size_t>(program_.slots[slot].elements));
    });
  }
  UpdateResult result;
  if (clip_norm_ > 0 || scales_loss_) {
    for_each_own_chunk([&](std::size_t i) {
      alignas(64) Gradient gradient;  // NOLINT(cppcoreguidelines-pro-type-member-init): gather() writes it
      gather(i, scaling_, gradient.data());
      if (scales_loss_) finite_[i] = is_finite(gradient.data(), chunks_[i].elements) ? 1 : 0;
      if (clip_norm_ > 0) squares_[i] = sum_of_squares(gradient.data(), chunks_[i].elements);
    });
    if (overflowed(step)) return {.norm = {}, .skipped = true};
    if (clip_norm_ > 0) result.norm = norm(step);
    if (result.norm) scaling_.clip = std::min(1.0, clip_norm_ / (*result.norm + 1e-6));
  }
  const exec::TensorBlock steps = matrix_steps(model, scalars);
  const std::vector<float> trust = trust_ratios(model, scalars, steps);
  for_each_own_run(model, [&](std::size_t i, ParameterRun& run) {
    const std::size_t parameter = chunks_[i].parameter;
    run.trust = trust[parameter];
    run.step = step_of(chunks_[i], steps, scalars.update);
    if (!is_frozen(parameter, scalars.update)) updates[groups_.of(parameter)](run);
    if (scalars.average > 0) {
      average(model.optimizer.back().at(parameter).data() + chunks_[i].first, run.parameter.data(),
              static_cast<float>(scalars.average), chunks_[i].elements);
    }
  });
  update_states(model);
  if (slices_ != nullptr) slices_->gather_updated(model.parameters, step);
  return result;
}

std::span<const float> CpuUpdater::step_of(const Chunk& chunk, const exec::TensorBlock& steps,
                                           std::int64_t update) const {
  if (!takes_step(chunk.parameter, update)) return {};
  return steps.at(chunk.parameter, {chunk.first, chunk.first + chunk.elements});
}

// A rank measures its own chunks; a parameter is whole in each part that has it.
std::vector<float> CpuUpdater::trust_ratios(const Model& model, const UpdateScalars& scalars,
                                            const exec::TensorBlock& steps) {
  std::vector<float> trust(uses_.size(), 1.0F);
  if (!optimizer_.trust_ratio) return trust;
  const auto of_groups = for_groups(scalars, optimizer_.trust_ratio);
  std::vector<double> parameters(chunks_.size()), directions(chunks_.size());
  for_each_own_run(model, [&](std::size_t i, ParameterRun& run) {
    if (is_frozen(chunks_[i].parameter, scalars.update)) return;
    run.step = step_of(chunks_[i], steps, scalars.update);
    const SquareSums sums = of_groups[groups_.of(chunks_[i].parameter)].measure(run);
    parameters[i] = sums.parameter;
    directions[i] = sums.direction;
  });
  if (slices_ != nullptr) {
    slices_->gather_numbers(parameters, owners_, scalars.step);
    slices_->gather_numbers(directions, owners_, scalars.step);
  }
  for (std::size_t first = 0; first < chunks_.size();) {
    const std::size_t parameter = chunks_[first].parameter, count = chunks_of(parameter);
    const TrustRatio& of = of_groups[groups_.of(parameter)];
    if (!is_frozen(parameter, scalars.update) && (of.of_all || groups_.decays(parameter))) {
      trust[parameter] = of.ratio(norm_of(std::span(parameters).subspan(first, count)),
                                  norm_of(std::span(directions).subspan(first, count)), elements(shape_of(parameter)));
    }
    first += count;
  }
  return trust;
}

exec::TensorBlock CpuUpdater::make_steps() const {
  std::vector<Shape> shapes;
  for (std::size_t p = 0; p < uses_.size(); ++p) shapes.push_back(is_matrix(p) ? shape_of(p) : Shape{0});
  return {graph_, graph_.parameters, shapes, makers_.held(rank_, owned())};
}

std::vector<MatrixTransfer> CpuUpdater::taken(std::vector<MatrixTransfer> transfers, std::int64_t update) const {
  std::erase_if(transfers, [&](const MatrixTransfer& transfer) { return !takes_step(transfer.parameter, update); });
  return transfers;
}

void CpuUpdater::transform(const Model& model, std::size_t parameter, const MatrixStep& how,
                           std::span<float> matrix) const {
  const auto [rows, columns] = matrix_sizes(parameter);
  std::array<float*, kMaxOptimizerStates> states{};
  for (std::size_t s = 0; s < own_states_; ++s) {
    const exec::TensorBlock& block = model.optimizer[s];
    if (block.shape(parameter) != shape_of(parameter) && !block.at(parameter).empty()) {
      states.at(s) = block.at(parameter).data();
    }
  }
  how.transform(matrix, rows, columns, {states.data(), own_states_});
}

// A step is sent as soon as it is made, while this rank makes others.
exec::TensorBlock CpuUpdater::matrix_steps(const Model& model, const UpdateScalars& scalars) {
  if (!optimizer_.matrix_step) return {};
  const auto of_groups = for_groups(scalars, optimizer_.matrix_step);
  const auto how = [&](std::size_t parameter) -> const MatrixStep& { return of_groups[groups_.of(parameter)]; };
  exec::TensorBlock steps = make_steps();
  for_each_own_run(model, [&](std::size_t i, const ParameterRun& run) {
    const Chunk& chunk = chunks_[i];
    if (!takes_step(chunk.parameter, scalars.update)) return;
    how(chunk.parameter)
        .measure(run, steps.at(chunk.parameter, exec::Extent{chunk.first, chunk.first + chunk.elements}));
  });
  const std::uint64_t step = scalars.step;
  if (group_ != nullptr) {
    MatrixExchange directions(*group_, *hosts_, taken(makers_.directions(owned()), scalars.update), steps);
    directions.send_all();
    directions.finish({"directions of matrices", step, timeout_});
  }
  std::optional<MatrixExchange> made;
  if (group_ != nullptr) made.emplace(*group_, *hosts_, taken(makers_.steps(owned()), scalars.update), steps);
  std::vector<std::size_t> own = makers_.made_by(rank_);
  std::erase_if(own, [&](std::size_t p) { return !takes_step(p, scalars.update); });
  pool_.run(static_cast<int>(own.size()), [&](int /*worker*/, int task) {
    const std::size_t p = own[task];
    transform(model, p, how(p), steps.at(p));
    if (made) made->send(p);
  });
  if (made) made->finish({"steps of matrices", step, timeout_});
  return steps;
}

void CpuUpdater::swap_average(Model& model, std::uint64_t step) {
  for_each_own_chunk([&](std::size_t i) {
    const auto [parameter, first, elements] = chunks_[i];
    float* const own = model.parameters.at(parameter).data() + first;
    std::swap_ranges(own, own + elements, model.optimizer.back().at(parameter).data() + first);
  });
  if (slices_ != nullptr) slices_->gather_updated(model.parameters, step);
}

void CpuUpdater::update_states(Model& model) const {
  for (std::size_t i = 0; i < program_.slots.size(); ++i) {
    const Slot& slot = program_.slots[i];
    if (slot.kind != Slot::Kind::statistic) continue;
    const comm::GradientBuckets::Slot& at = buckets_.slots[i];
    const std::size_t target = slot.target;
    blend(model.states.at(target).data(), reducer_.reduced(at.bucket).data() + at.offset,
          graph_.at(graph_.states[target]).momentum, micro_batches_, slot.elements);
  }
}

}  // namespace lockstep::optim
