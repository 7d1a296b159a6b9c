// CudnnKernel: a program, operation by operation. Values of a tensor stand in the order of its sizes, whatever it is in
// memory.
#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "cuda/interpreter/cudnn_program.hpp"

namespace lockstep::ptx {

namespace {

using Kind = CudnnOperation::Kind;
using Values = std::vector<float>;

constexpr const char* kCudnnWho = "a kernel of cuDNN";

std::size_t cudnn_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

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

Values read_tensor(LibraryOperands& on, const CudnnTensor& tensor, const void* memory) {
  Values values(cudnn_size(tensor.elements()));
  each_run(tensor, [&](std::int64_t place, std::int64_t first, std::int64_t count, std::int64_t step) {
    const Values run = on.read(tensor.element, memory, place, cudnn_size(count));
    for (std::int64_t i = 0; i < count; ++i) values[cudnn_size(first + i * step)] = run[cudnn_size(i)];
  });
  return values;
}

void write_tensor(LibraryOperands& on, const CudnnTensor& tensor, void* memory, const Values& values) {
  Values run;
  each_run(tensor, [&](std::int64_t place, std::int64_t first, std::int64_t count, std::int64_t step) {
    run.resize(cudnn_size(count));
    for (std::int64_t i = 0; i < count; ++i) run[cudnn_size(i)] = values[cudnn_size(first + i * step)];
    on.write(tensor.element, memory, place, run);
  });
}

/// A sum, whose terms come in parts: each added up first, where that is wanted.
class Sum {
 public:
  explicit Sum(bool in_parts) : in_parts_(in_parts) {}
  void add(float term) { (in_parts_ ? part_ : all_) += term; }
  void end_part() { all_ += std::exchange(part_, 0.0F); }
  [[nodiscard]] float value() const { return all_; }

 private:
  bool in_parts_;
  float all_ = 0, part_ = 0;
};

/// The three tensors of a convolution by their roles, and where they are read.
class Convolution {
 public:
  Convolution(const CudnnOperation& of, const CudnnTensor& image, const CudnnTensor& weight, const CudnnTensor& output,
              bool in_parts)
      : of_(of), image_(image.sizes), weight_(weight.sizes), output_(output.sizes), in_parts_(in_parts) {}

  [[nodiscard]] Values output(const Values& image, const Values& weight) const {
    Values sums(count(output_));
    for (std::int64_t n = 0; n < output_[0]; ++n) {
      for (std::int64_t k = 0; k < output_[1]; ++k) {
        for (std::int64_t p = 0; p < output_[2]; ++p) {
          for (std::int64_t q = 0; q < output_[3]; ++q)
            sums[at(output_, n, k, p, q)] = output(image, weight, n, k, p, q);
        }
      }
    }
    return sums;
  }

  [[nodiscard]] Values image_gradient(const Values& gradient, const Values& weight) const {
    Values sums(count(image_));
    for (std::int64_t n = 0; n < image_[0]; ++n) {
      for (std::int64_t c = 0; c < image_[1]; ++c) {
        for (std::int64_t y = 0; y < image_[2]; ++y) {
          for (std::int64_t x = 0; x < image_[3]; ++x) {
            sums[at(image_, n, c, y, x)] = image_gradient(gradient, weight, n, c, y, x);
          }
        }
      }
    }
    return sums;
  }

  [[nodiscard]] Values weight_gradient(const Values& gradient, const Values& image) const {
    Values sums(count(weight_));
    for (std::int64_t k = 0; k < weight_[0]; ++k) {
      for (std::int64_t c = 0; c < weight_[1]; ++c) {
        for (std::int64_t r = 0; r < weight_[2]; ++r) {
          for (std::int64_t s = 0; s < weight_[3]; ++s) {
            sums[at(weight_, k, c, r, s)] = weight_gradient(gradient, image, k, c, r, s);
          }
        }
      }
    }
    return sums;
  }

 private:
  using Sizes = std::vector<std::int64_t>;

  static std::size_t count(const Sizes& sizes) {
    return cudnn_size(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>()));
  }
  static std::size_t at(const Sizes& sizes, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
    return cudnn_size(((a * sizes[1] + b) * sizes[2] + c) * sizes[3] + d);
  }
  /// Where the window's place `in_window` at `out` stands in the image; it may be beside it.
  [[nodiscard]] std::int64_t in_image(std::size_t axis, std::int64_t out, std::int64_t in_window) const {
    return out * of_.stride[axis] - of_.before[axis] + in_window * of_.dilation[axis];
  }
  [[nodiscard]] bool is_in_image(std::int64_t y, std::int64_t x) const {
    return y >= 0 && y < image_[2] && x >= 0 && x < image_[3];
  }
  /// Filters, and channels of the image, of a group.
  [[nodiscard]] std::int64_t group_filters() const { return weight_[0] * weight_[1] / image_[1]; }
  [[nodiscard]] std::int64_t first_channel(std::int64_t filter) const { return filter / group_filters() * weight_[1]; }

  [[nodiscard]] float output(const Values& image, const Values& weight, std::int64_t n, std::int64_t k, std::int64_t p,
                             std::int64_t q) const {
    Sum sum(in_parts_);
    for (std::int64_t r = 0; r < weight_[2]; ++r) {
      for (std::int64_t s = 0; s < weight_[3]; ++s) {
        const std::int64_t y = in_image(0, p, r), x = in_image(1, q, s);
        if (!is_in_image(y, x)) continue;
        for (std::int64_t c = 0; c < weight_[1]; ++c) {
          sum.add(image[at(image_, n, first_channel(k) + c, y, x)] * weight[at(weight_, k, c, r, s)]);
        }
        sum.end_part();
      }
    }
    return sum.value();
  }

  /// The output's place whose window has this place of the image at `in_window`; negative: there is none.
  [[nodiscard]] std::int64_t in_output(std::size_t axis, std::int64_t place, std::int64_t in_window) const {
    const std::int64_t distance = place + of_.before[axis] - in_window * of_.dilation[axis];
    if (distance < 0 || distance % of_.stride[axis] != 0) return -1;
    return distance / of_.stride[axis] < output_[2 + axis] ? distance / of_.stride[axis] : -1;
  }

  [[nodiscard]] float image_gradient(const Values& gradient, const Values& weight, std::int64_t n, std::int64_t c,
                                     std::int64_t y, std::int64_t x) const {
    Sum sum(in_parts_);
    const std::int64_t group = c / weight_[1], filters = group_filters();
    for (std::int64_t r = 0; r < weight_[2]; ++r) {
      for (std::int64_t s = 0; s < weight_[3]; ++s) {
        const std::int64_t p = in_output(0, y, r), q = in_output(1, x, s);
        if (p < 0 || q < 0) continue;
        for (std::int64_t k = group * filters; k < (group + 1) * filters; ++k) {
          sum.add(gradient[at(output_, n, k, p, q)] * weight[at(weight_, k, c % weight_[1], r, s)]);
        }
        sum.end_part();
      }
    }
    return sum.value();
  }

  [[nodiscard]] float weight_gradient(const Values& gradient, const Values& image, std::int64_t k, std::int64_t c,
                                      std::int64_t r, std::int64_t s) const {
    Sum sum(in_parts_);
    for (std::int64_t n = 0; n < image_[0]; ++n) {
      for (std::int64_t p = 0; p < output_[2]; ++p) {
        for (std::int64_t q = 0; q < output_[3]; ++q) {
          const std::int64_t y = in_image(0, p, r), x = in_image(1, q, s);
          if (!is_in_image(y, x)) continue;
          sum.add(gradient[at(output_, n, k, p, q)] * image[at(image_, n, first_channel(k) + c, y, x)]);
        }
      }
      sum.end_part();
    }
    return sum.value();
  }

  const CudnnOperation& of_;
  const Sizes &image_, &weight_, &output_;
  bool in_parts_;
};

Values convolve(const CudnnProgram& program, CudnnEngine engine, Values first, Values second) {
  const CudnnOperation& of = program.operations[0];
  const CudnnTensor &a = program.tensors.at(of.first), &b = program.tensors.at(of.second);
  const CudnnTensor& result = program.sums();
  if (engine == CudnnEngine::tensor_cores && !program.is_low_precision()) {
    std::ranges::transform(first, first.begin(), in_tf32);
    std::ranges::transform(second, second.begin(), in_tf32);
  }
  const bool in_parts = engine == CudnnEngine::in_parts;
  switch (of.kind) {
    case Kind::output:
      return Convolution(of, a, b, result, in_parts).output(first, second);
    case Kind::image_gradient:
      return Convolution(of, result, b, a, in_parts).image_gradient(first, second);
    default:
      return Convolution(of, b, result, a, in_parts).weight_gradient(first, second);
  }
}

/// What stands at the same place of a tensor that has one size of 1 or another.
void add_broadcast(Values& to, const CudnnTensor& sums, const Values& other, const CudnnTensor& of_other) {
  for (std::int64_t i = 0; i < sums.elements(); ++i) {
    std::int64_t rest = i, place = 0, step = 1;
    for (std::size_t d = 4; d-- > 0;) {
      if (of_other.sizes[d] > 1) place += rest % sums.sizes[d] * step;
      step *= of_other.sizes[d];
      rest /= sums.sizes[d];
    }
    to[cudnn_size(i)] += other[cudnn_size(place)];
  }
}

}  // namespace

LibraryCost CudnnKernel::cost() const {
  const CudnnOperation& first = program_->operations[0];
  // The window and a group's channels stand in the weight: [filters, channels of a group, height, width].
  const bool of_weight = first.kind == Kind::weight_gradient;
  const CudnnTensor& weight = of_weight ? program_->sums() : program_->tensors.at(first.second);
  const CudnnTensor& output = first.kind == Kind::output ? program_->sums() : program_->tensors.at(first.first);
  f64 bytes = 0;
  for (const auto& [uid, tensor] : program_->tensors) {
    if (!tensor.is_virtual) bytes += static_cast<f64>(tensor.elements()) * static_cast<f64>(bytes_of(tensor.element));
  }
  const f64 window = static_cast<f64>(weight.elements()) / static_cast<f64>(weight.sizes[0]);
  return {"cuDNN", 2 * static_cast<f64>(output.elements()) * window, bytes};
}

bool CudnnKernel::run(LibraryMemory& memory) {
  LibraryOperands on(memory, kCudnnWho);
  const auto operand = [&](std::int64_t uid) { return read_tensor(on, program_->tensors.at(uid), memory_.at(uid)); };
  const CudnnOperation& first = program_->operations[0];
  Values values = convolve(*program_, engine_, operand(first.first), operand(first.second));
  if (engine_ == CudnnEngine::in_parts) {
    on.write_workspace(workspace_, values);
    values = on.read_workspace(workspace_, values.size());
  }
  for (const CudnnOperation& one : program_->operations) {
    if (one.kind == Kind::add) {
      add_broadcast(values, program_->tensors.at(one.first), operand(one.second), program_->tensors.at(one.second));
    } else if (one.kind == Kind::relu) {
      std::ranges::transform(values, values.begin(), [](float value) { return value < 0 ? 0 : value; });
    }
  }
  const std::int64_t result = program_->operations.back().result;
  write_tensor(on, program_->tensors.at(result), memory_.at(result), values);
  return true;
}

}  // namespace lockstep::ptx
