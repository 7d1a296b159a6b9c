#include "optim/cpu_updater.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "core/round_up.hpp"
#include "core/vectorize.hpp"
#include "device/cpu/add.hpp"
#include "device/row_blocks.hpp"

namespace lockstep::optim {

namespace {

constexpr int kChunksPerTask = 16;

LOCKSTEP_VECTORIZED void divide(const float* sum, float count, float* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = sum[i] / count;
}
LOCKSTEP_VECTORIZED void scale(float* values, float factor, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) values[i] *= factor;
}
LOCKSTEP_VECTORIZED void blend(float* state, const float* sum, float momentum, float shards, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) state[i] = (1.0F - momentum) * state[i] + momentum * (sum[i] / shards);
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

// Eight lanes, combined in a fixed order.
LOCKSTEP_VECTORIZED double sum_of_squares(const float* values, std::int64_t n) {
  double lanes[8] = {};
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int lane = 0; lane < 8; ++lane) {
      const double value = static_cast<double>(values[i + lane]);
      lanes[lane] += value * value;
    }
  }
  for (int lane = 0; i < n; ++i, ++lane) lanes[lane] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

int tasks_for(std::size_t chunks) {
  return static_cast<int>(divide_up<std::size_t>(chunks, kChunksPerTask));
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

const exec::TensorBlock& CpuUpdater::gradient() {
  if (!gradient_) gradient_ = make_state();
  for_each_own_chunk(
      [&](std::size_t i) { gather(i, scaling_, gradient_->at(chunks_[i].parameter).data() + chunks_[i].first); });
  return *gradient_;
}

double CpuUpdater::norm(std::uint64_t step) {
  double sum = 0;
  const std::span<const double> squares = gather_numbers(squares_, step);
  device::for_levels_of(
      squares.data(), std::ssize(squares), 1, &sum, square_levels_.data(),
      [](const double* from, const device::RowBlocks& blocks, double* to) { device::sum_level(from, blocks, 1, to); });
  return std::sqrt(sum);
}

bool CpuUpdater::overflowed(std::uint64_t step) {
  if (!scales_loss_) return false;
  std::vector<double> finite(finite_.begin(), finite_.end());
  const std::span<const double> all = gather_numbers(finite, step);
  return std::find(all.begin(), all.end(), 0.0) != all.end();
}

// A chunk's gradient is computed from its sums wherever it is needed: for the norm, and again for the update.
UpdateResult CpuUpdater::update(Model& model, double count, const UpdateScalars& scalars) {
  using Gradient = std::array<float, comm::kChunkElements>;
  std::vector<ParameterUpdate> updates;  // by group
  for (std::size_t group = 0; group < groups_.count(); ++group) {
    updates.push_back(
        optimizer_.update(groups_.settings(group), {scalars.learning_rate * groups_.rate(group), scalars.update}));
  }
  const auto step = static_cast<std::uint64_t>(scalars.step);
  scaling_ = {.divisor = static_cast<float>(count * scalars.loss_scale)};
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
    if (result.norm) scaling_.clip = static_cast<float>(std::min(1.0, clip_norm_ / (*result.norm + 1e-6)));
  }
  for_each_own_chunk([&](std::size_t i) {
    const Chunk& chunk = chunks_[i];
    alignas(64) Gradient gradient;  // NOLINT(cppcoreguidelines-pro-type-member-init): gather() writes it
    gather(i, scaling_, gradient.data());
    const auto at = [&](const exec::TensorBlock& block) { return block.at(chunk.parameter).data() + chunk.first; };
    std::array<float*, kMaxOptimizerStates> states{};
    for (std::size_t s = 0; s < model.optimizer.size(); ++s) states.at(s) = at(model.optimizer[s]);
    const auto n = static_cast<std::size_t>(chunk.elements);
    updates[groups_.of(chunk.parameter)]({{at(model.parameters), n},
                                          {gradient.data(), n},
                                          {states.data(), model.optimizer.size()},
                                          groups_.decays(chunk.parameter)});
  });
  update_states(model);
  if (slices_ != nullptr) slices_->gather_updated(model.parameters, step);
  return result;
}

void CpuUpdater::update_states(Model& model) const {
  for (std::size_t i = 0; i < program_.slots.size(); ++i) {
    const Slot& slot = program_.slots[i];
    if (slot.kind != Slot::Kind::statistic) continue;
    const comm::GradientBuckets::Slot& at = buckets_.slots[i];
    const auto target = static_cast<std::size_t>(slot.target);
    blend(model.states.at(target).data(), reducer_.reduced(at.bucket).data() + at.offset,
          static_cast<float>(graph_.at(graph_.states[target]).momentum), static_cast<float>(shards_), slot.elements);
  }
}

}  // namespace lockstep::optim
