#include "step/exec/gpu_tensors.hpp"

#include <algorithm>

#include "core/round_up.hpp"
#include "graph/precision.hpp"
#include "graph/weight_order.hpp"
#include "lockstep/error.hpp"

namespace lockstep::exec {

namespace {

using device::Gpu;

constexpr std::size_t kCopyAlignment = 256;  // the alignment of Gpu::allocate(), for libraries
constexpr std::size_t kStagingBytes = std::size_t{16} << 20;

std::vector<GpuTensors::Run> lay_out(const KeptElements& kept) {
  std::vector<GpuTensors::Run> runs;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    for (const Extent& extent : kept[i]) {
      runs.push_back({i, extent, at});
      at += GpuTensors::parts_of(runs.back().elements()) * GpuTensors::kPart;
    }
  }
  return runs;
}

std::int64_t elements_of(const std::vector<GpuTensors::Run>& runs) {
  if (runs.empty()) return 0;
  return runs.back().start + GpuTensors::parts_of(runs.back().elements()) * GpuTensors::kPart;
}

std::vector<std::int64_t> starts_of(const std::vector<GpuTensors::Run>& runs, std::size_t tensors) {
  std::vector<std::int64_t> starts(tensors);
  for (std::size_t r = runs.size(); r-- > 0;) starts[runs[r].tensor] = runs[r].start;
  return starts;
}

/// By tensor: elements from the start of its first run to the end of its last one.
std::vector<std::int64_t> extents_of(const std::vector<GpuTensors::Run>& runs, std::size_t tensors) {
  const std::vector<std::int64_t> starts = starts_of(runs, tensors);
  std::vector<std::int64_t> extents(tensors);
  for (const GpuTensors::Run& run : runs) extents[run.tensor] = run.start + run.elements() - starts[run.tensor];
  return extents;
}

std::size_t lay_out_copies(const KeptElements& parameters, const std::vector<DType>& types,
                           std::vector<std::size_t>& starts) {
  const std::vector<std::int64_t> extents = extents_of(lay_out(parameters), parameters.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    starts.push_back(at);
    if (types.at(i) == DType::f32) continue;
    at += round_up(extents[i] * size_of(types[i]), kCopyAlignment);
  }
  return at;
}

std::vector<FilterSizes> orders_of(const TensorBlock& block, const std::vector<bool>& channels_last) {
  std::vector<FilterSizes> orders(block.size());
  for (std::size_t i = 0; i < channels_last.size(); ++i) {
    if (channels_last[i]) orders.at(i) = filter_sizes(block.shape(i));
  }
  return orders;
}

/// Calls copy(bytes of the tensor, their address on the GPU, number of bytes) for pieces that fit into the staging
/// memory.
template <class Copy>
void in_pieces(std::span<float> tensor, float* device, const Copy& copy) {
  const auto host = std::as_writable_bytes(tensor);
  for (std::size_t at = 0; at < host.size(); at += kStagingBytes) {
    copy(host.data() + at, reinterpret_cast<std::byte*>(device) + at, std::min(kStagingBytes, host.size() - at));
  }
}

}  // namespace

KeptElements kept_elements(const TensorBlock& block) {
  KeptElements kept;
  for (std::size_t i = 0; i < block.size(); ++i) kept.push_back(block.own(i));
  return kept;
}

std::size_t GpuTensors::bytes(const KeptElements& kept) {
  return elements_of(lay_out(kept)) * sizeof(float);
}

GpuTensors::GpuTensors(Gpu& gpu, Gpu::Stream stream, const TensorBlock& like, const std::vector<bool>& channels_last)
    : gpu_(gpu),
      stream_(stream),
      copied_(gpu.make_event()),
      runs_(lay_out(kept_elements(like))),
      starts_(starts_of(runs_, like.size())),
      extents_(extents_of(runs_, like.size())),
      orders_(orders_of(like, channels_last)),
      elements_(elements_of(runs_)),
      device_(gpu, elements_ * sizeof(float)) {
  for (const Run& run : runs_) {
    const bool all = run.elements() == std::ssize(like.at(run.tensor));
    LOCKSTEP_CHECK(all || !orders_[run.tensor].orders_differ(), "a weight in another order is kept as a whole");
  }
  if (elements_ > 0) gpu.clear(stream, device_.get(), elements_ * sizeof(float));
}

std::int64_t GpuTensors::offset(std::size_t i, std::int64_t place) const {
  const auto run = std::partition_point(runs_.begin(), runs_.end(), [&](const Run& before) {
    return before.tensor < i || (before.tensor == i && before.extent.end <= place);
  });
  LOCKSTEP_CHECK(run != runs_.end() && run->tensor == i && run->extent.begin <= place, "an element that is here");
  return run->start + place - run->extent.begin;
}

GpuTensors::~GpuTensors() {
  try {
    gpu_.make_current();
    gpu_.record(copied_, stream_);
    gpu_.wait(copied_);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the GPU is lost, and its memory with it
  }
}

void GpuTensors::upload(const TensorBlock& block) {
  const device::PinnedBlock staging(gpu_, kStagingBytes);
  std::vector<float> ordered;
  for (const Run& run : runs_) {
    std::span<float> values = block.at(run.tensor, run.extent);
    if (orders_[run.tensor].orders_differ()) {
      ordered.resize(values.size());
      for (std::size_t e = 0; e < values.size(); ++e) ordered[e] = values[in_model(run.tensor, e)];
      values = ordered;
    }
    in_pieces(values, data() + run.start, [&](const std::byte* host, std::byte* device, std::size_t bytes) {
      gpu_.fill(staging.get(), host, bytes);
      gpu_.copy_in(stream_, device, staging.get(), bytes);
      gpu_.record(copied_, stream_);
      gpu_.wait(copied_);
    });
  }
}

void GpuTensors::download(TensorBlock& block) {
  const device::PinnedBlock staging(gpu_, kStagingBytes);
  std::vector<float> ordered;
  for (const Run& run : runs_) {
    const std::span<float> values = block.at(run.tensor, run.extent);
    const bool differs = orders_[run.tensor].orders_differ();
    if (differs) ordered.resize(values.size());
    in_pieces(differs ? ordered : values, data() + run.start,
              [&](std::byte* host, const std::byte* device, std::size_t bytes) {
                gpu_.copy_out(stream_, staging.get(), device, bytes);
                gpu_.record(copied_, stream_);
                gpu_.wait(copied_);
                gpu_.reads(staging.get(), bytes);
                std::copy_n(staging.get(), bytes, host);
              });
    if (!differs) continue;
    for (std::size_t e = 0; e < values.size(); ++e) values[in_model(run.tensor, e)] = ordered[e];
  }
}

std::size_t LowPrecisionWeights::bytes(const KeptElements& parameters, const std::vector<DType>& types) {
  std::vector<std::size_t> starts;
  return lay_out_copies(parameters, types, starts);
}

LowPrecisionWeights::LowPrecisionWeights(device::Gpu& gpu, const TensorBlock& parameters,
                                         const std::vector<DType>& types)
    : gpu_(gpu), types_(types), device_(gpu, lay_out_copies(kept_elements(parameters), types, starts_)) {}

void LowPrecisionWeights::make(std::size_t parameter, device::Gpu::Stream stream, const float* from,
                               std::int64_t elements) const {
  if (std::byte* const copy = at(parameter); copy != nullptr && elements > 0) {
    gpu_.cast(stream, device::Cast::downcast, type(parameter), from, copy, elements);
  }
}

GpuParameters::GpuParameters(Gpu& gpu, const Graph& graph, const TensorBlock& parameters, const TensorBlock& states)
    : gpu_(gpu),
      stream_(gpu.make_kernel_stream()),
      changed_(gpu.make_event()),
      copies_(gpu, parameters, low_precision_weights(graph)),
      parameters_(gpu, stream_, parameters, kept_channels_last(graph)),
      states_(gpu, stream_, states) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    view_.parameters.push_back(parameters_.at(i));
    view_.low_precision.push_back(copies_.at(i));
  }
  for (std::size_t i = 0; i < states.size(); ++i) view_.states.push_back(states_.at(i));
  view_.channels_last = kept_channels_last(graph);
  view_.changed = changed_;
  upload(parameters, states);
}

void GpuParameters::upload(const TensorBlock& parameters, const TensorBlock& states) {
  gpu_.make_current();
  parameters_.upload(parameters);
  states_.upload(states);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    copies_.make(i, stream_, parameters_.at(i), parameters_.extent(i));
  }
  record_change();
}

void GpuParameters::download(TensorBlock& parameters, TensorBlock& states) {
  gpu_.make_current();
  parameters_.download(parameters);
  states_.download(states);
}

std::vector<MemoryNeed> GpuParameters::needs(const Graph& graph, const KeptElements& parameters,
                                             const KeptElements& states) {
  std::vector<MemoryNeed> needs = {
      {"parameters and states", GpuTensors::bytes(parameters) + GpuTensors::bytes(states)}};
  if (const std::size_t bytes = LowPrecisionWeights::bytes(parameters, low_precision_weights(graph)); bytes > 0) {
    needs.push_back({"parameters in 2 bytes", bytes});
  }
  return needs;
}

}  // namespace lockstep::exec
