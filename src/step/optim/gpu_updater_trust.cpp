// GpuUpdater's part for optimizers with a trust ratio: norms of whole parameters, of which a rank measures its own
// chunks.
#include "step/optim/gpu_updater.hpp"
#include "step/optim/trust_kernels.hpp"

namespace lockstep::optim {

using exec::GpuTensors;

MeasuredChunk GpuUpdater::measured_chunk(std::size_t number, const NormChunk& at) const {
  const GpuTensors& block = parameters_->parameters();
  const auto [parameter, first, elements] = chunks_[number];
  return {.at = at,
          .parameter = block.data() + block.offset(parameter, first) - first,
          .group = static_cast<std::int32_t>(groups_.of(parameter)),
          .decay = groups_.decays(parameter)};
}

std::vector<MeasuredChunk> GpuUpdater::measured_chunks(const std::vector<NormChunk>& chunks) const {
  std::vector<MeasuredChunk> measured;
  for (std::size_t i = 0; i < chunks.size(); ++i) measured.push_back(measured_chunk(own_chunks_[i], chunks[i]));
  return measured;
}

std::vector<TrustedTensor> GpuUpdater::trusted_tensors() const {
  std::vector<TrustedTensor> tensors;
  for (std::size_t first = 0; first < chunks_.size(); first += chunks_of(chunks_[first].parameter)) {
    const std::size_t parameter = chunks_[first].parameter;
    tensors.push_back({.first = static_cast<std::int64_t>(first),
                       .chunks = static_cast<std::int64_t>(chunks_of(parameter)),
                       .elements = elements(shape_of(parameter)),
                       .number = static_cast<std::int32_t>(parameter),
                       .group = static_cast<std::int32_t>(groups_.of(parameter)),
                       .has_ratio = is_adafactor() || groups_.decays(parameter)});
  }
  return tensors;
}

void GpuUpdater::make_measure_tables(const std::vector<NormChunk>& chunks) {
  const auto measured = measured_chunks(chunks);
  trust_->chunks = table(std::as_bytes(std::span(measured)));
  trust_->lanes = device::GpuBlock(gpu_, own_chunks_.size() * 2 * kSquareLanes * sizeof(double));
}

void GpuUpdater::make_trust_tables() {
  TrustBlocks& trust = trust_.emplace();
  const auto tensors = trusted_tensors();
  trust.tensors = table(std::as_bytes(std::span(tensors)));
  trust.tensor_count = tensors.size();
  trust.parameter_squares = device::GpuBlock(gpu_, own_chunks_.size() * sizeof(double));
  trust.direction_squares = device::GpuBlock(gpu_, own_chunks_.size() * sizeof(double));
  trust.levels = device::GpuBlock(gpu_, 2 * chunks_.size() * sizeof(double));
  trust.ratios = device::GpuBlock(gpu_, uses_.size() * sizeof(float));
  if (slices_ == nullptr) return;
  for (auto* numbers : {&trust.parameters, &trust.directions}) {
    numbers->emplace(gpu_, parameters_->stream(), GpuChunkNumbers::Chunks{own_chunks_, chunks_.size(), chunks_.size()},
                     [this](std::vector<double>& here, std::uint64_t step) {
                       slices_->gather_numbers(here, owners_, step);
                       return std::span<const double>(here);
                     });
  }
}

TrustOperands GpuUpdater::gathered_squares(std::uint64_t step) {
  TrustBlocks& trust = *trust_;
  const auto *const parameters = trust.parameter_squares.as<double>(), *const directions =
                                                                           trust.direction_squares.as<double>();
  return {.tensors = trust.tensors.as<TrustedTensor>(),
          .group = 0,
          .parameter_squares = trust.parameters ? trust.parameters->gather(parameters, step) : parameters,
          .direction_squares = trust.directions ? trust.directions->gather(directions, step) : directions,
          .levels = trust.levels.as<double>(),
          .chunks = std::ssize(chunks_),
          .trust = trust.ratios.as<float>()};
}

void GpuUpdater::launch_trust(GpuStream* stream, UpdateOperands of, const UpdateScalars& scalars) {
  TrustBlocks& trust = *trust_;
  auto *const parameters = trust.parameter_squares.as<double>(), *const directions =
                                                                     trust.direction_squares.as<double>();
  for_each_group(scalars, [&](std::int32_t group, const Attributes& settings, const UpdateStep& of_group) {
    of.group = group;
    kernels_->launch_measure(stream, std::ssize(own_chunks_),
                             {of, trust.chunks.as<MeasuredChunk>(), trust.lanes.as<double>(), parameters, directions},
                             optimizer_.name, settings, of_group);
  });
  TrustOperands operands = gathered_squares(scalars.step);
  for_each_group(scalars, [&](std::int32_t group, const Attributes& settings, const UpdateStep& of_group) {
    operands.group = group;
    kernels_->launch_trust(stream, static_cast<std::int64_t>(trust.tensor_count), operands, optimizer_.name, settings,
                           of_group);
  });
}

}  // namespace lockstep::optim
