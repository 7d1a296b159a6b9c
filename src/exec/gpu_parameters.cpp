#include "exec/gpu_parameters.hpp"

#include <algorithm>

#include "backend/gpu/input_stage.hpp"
#include "lockstep/error.hpp"

namespace lockstep::exec {

namespace {

/// visit(tensor, where it starts) for each tensor of both blocks.
template <class Visit>
std::size_t lay_out(const TensorBlock& parameters, const TensorBlock& states, const Visit& visit) {
  std::size_t at = 0;
  for (const TensorBlock* block : {&parameters, &states}) {
    for (std::size_t i = 0; i < block->size(); ++i) {
      visit(*block, i, at);
      at += backend::InputStage::up_to_part(block->at(i).size_bytes());
    }
  }
  return at;
}

}  // namespace

std::size_t GpuParameters::bytes(const TensorBlock& parameters, const TensorBlock& states) {
  return lay_out(parameters, states, [](const TensorBlock&, std::size_t, std::size_t) {});
}

GpuParameters::GpuParameters(backend::Gpu& gpu, const TensorBlock& parameters, const TensorBlock& states)
    : gpu_(gpu),
      stream_(gpu.make_stream()),
      copied_(gpu.make_event()),
      bytes_(std::max<std::size_t>(bytes(parameters, states), 1)),
      device_(gpu.allocate(bytes_)),
      pinned_(gpu.allocate_pinned(bytes_)) {
  lay_out(parameters, states, [&](const TensorBlock& block, std::size_t /*index*/, std::size_t at) {
    (&block == &parameters ? parameters_ : states_).push_back(reinterpret_cast<const float*>(device_ + at));
  });
}

GpuParameters::~GpuParameters() {
  try {
    gpu_.make_current();
    gpu_.wait(copied_);
    gpu_.free(device_);
    gpu_.free_pinned(pinned_);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the GPU is lost, and its memory with it
  }
}

void GpuParameters::update(const TensorBlock& parameters, const TensorBlock& states) {
  gpu_.make_current();
  lay_out(parameters, states, [&](const TensorBlock& block, std::size_t index, std::size_t at) {
    const auto from = std::as_bytes(block.at(index));
    gpu_.fill(pinned_ + at, from.data(), from.size());
    gpu_.copy_in(stream_, device_ + at, pinned_ + at, from.size());  // while the next one is filled
  });
  gpu_.record(copied_, stream_);
  gpu_.wait(copied_);
}

}  // namespace lockstep::exec
