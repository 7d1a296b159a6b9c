#include "cuda/interpreter/cudnn_values.hpp"

#include <array>

namespace lockstep::ptx {

namespace {

/// visit(place in memory, place among the values, count, step among the values) for runs of elements that lie beside
/// each other.
template <class Visit>
void each_run(const CudnnTensor& tensor, const Visit& visit) {
  std::array<std::int64_t, 4> steps{};  // among the values
  std::int64_t step = 1;
  for (std::size_t d = 4; d-- > 0; step *= tensor.sizes[d]) steps[d] = step;
  std::size_t inner = 3;
  for (std::size_t d = 0; d < 4; ++d) {
    if (tensor.strides[d] == 1 && tensor.sizes[d] > 1) inner = d;
  }
  const bool is_run = tensor.strides[inner] == 1;
  const std::int64_t length = is_run ? tensor.sizes[inner] : 1;
  std::array<std::int64_t, 4> at{};
  for (std::int64_t run = 0; run < tensor.elements() / length; ++run) {
    std::int64_t rest = run, place = 0, value = 0;
    for (std::size_t d = 4; d-- > 0;) {
      if (is_run && d == inner) continue;
      at[d] = rest % tensor.sizes[d];
      rest /= tensor.sizes[d];
      place += at[d] * tensor.strides[d];
      value += at[d] * steps[d];
    }
    visit(place, value, length, steps[inner]);
  }
}

}  // namespace

CudnnValues read_tensor(LibraryOperands& on, const CudnnTensor& tensor, const void* memory) {
  CudnnValues values(cudnn_size(tensor.elements()));
  each_run(tensor, [&](std::int64_t place, std::int64_t first, std::int64_t count, std::int64_t step) {
    const CudnnValues run = on.read(tensor.element, memory, place, cudnn_size(count));
    for (std::int64_t i = 0; i < count; ++i) values[cudnn_size(first + i * step)] = run[cudnn_size(i)];
  });
  return values;
}

void write_tensor(LibraryOperands& on, const CudnnTensor& tensor, void* memory, const CudnnValues& values) {
  CudnnValues run;
  each_run(tensor, [&](std::int64_t place, std::int64_t first, std::int64_t count, std::int64_t step) {
    run.resize(cudnn_size(count));
    for (std::int64_t i = 0; i < count; ++i) run[cudnn_size(i)] = values[cudnn_size(first + i * step)];
    on.write(tensor.element, memory, place, run);
  });
}

std::size_t place_of_broadcast(std::size_t i, const CudnnTensor& all, const CudnnTensor& of) {
  auto rest = static_cast<std::int64_t>(i);
  std::int64_t place = 0, step = 1;
  for (std::size_t d = 4; d-- > 0;) {
    if (of.sizes[d] > 1) place += rest % all.sizes[d] * step;
    step *= of.sizes[d];
    rest /= all.sizes[d];
  }
  return cudnn_size(place);
}

}  // namespace lockstep::ptx
