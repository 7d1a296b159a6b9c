#include "device/gpu/input_stage.hpp"

#include "lockstep/error.hpp"

namespace lockstep::device {

InputStage::InputStage(Gpu& gpu, Gpu::Stream compute, std::size_t bytes, std::size_t depth)
    : gpu_(gpu), compute_(compute), copy_(gpu.make_stream()), bytes_(bytes), places_(depth) {
  for (Place& place : places_) {
    place.copied = gpu_.make_event();
    place.computed = gpu_.make_event();
    place.pinned = gpu_.allocate_pinned(bytes);
    place.device = gpu_.allocate(bytes);
  }
}

InputStage::~InputStage() {
  try {
    for (const Place& place : places_) {
      gpu_.wait(place.copied);
      gpu_.wait(place.computed);
      gpu_.free_pinned(place.pinned);
      gpu_.free(place.device);
    }
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the GPU is lost, and its memory with it
  }
}

void InputStage::put(std::span<const std::span<const std::byte>> parts) {
  LOCKSTEP_CHECK(put_ - released_ < places_.size(), "a batch for which there is no place");
  std::size_t size = 0;
  for (const auto part : parts) size = up_to_part(size) + part.size();
  LOCKSTEP_CHECK(size <= bytes_, "a batch larger than its place");
  const Place& to = place(put_++);
  gpu_.wait(to.copied);  // the copy that last read the pinned block
  std::size_t at = 0;
  for (const auto part : parts) {
    at = up_to_part(at);
    gpu_.fill(to.pinned + at, part.data(), part.size());
    at += part.size();
  }
  gpu_.wait(copy_, to.computed);  // the kernels that last read the device block
  gpu_.copy_in(copy_, to.device, to.pinned, size);
  gpu_.record(to.copied, copy_);
}

const std::byte* InputStage::take() {
  LOCKSTEP_CHECK(taken_ < put_, "no batch was put");
  const Place& from = place(taken_++);
  gpu_.wait(compute_, from.copied);
  return from.device;
}

void InputStage::release() {
  LOCKSTEP_CHECK(released_ < taken_, "no batch was taken");
  gpu_.record(place(released_++).computed, compute_);
}

}  // namespace lockstep::device
