// Convolutions as kernels.
#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>

#include "cuda/interpreter/cudnn_convolution.hpp"
#include "cuda/interpreter/cudnn_values.hpp"

namespace lockstep::ptx {

namespace {

using Kind = CudnnOperation::Kind;

/// The three tensors of a convolution by their roles, and where they are read.
class Convolution {
 public:
  Convolution(const CudnnOperation& of, const CudnnTensor& image, const CudnnTensor& weight, const CudnnTensor& output,
              bool in_parts)
      : of_(of), image_(image.sizes), weight_(weight.sizes), output_(output.sizes), in_parts_(in_parts) {}

  [[nodiscard]] CudnnValues output(const CudnnValues& image, const CudnnValues& weight) const {
    CudnnValues sums(count(output_));
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

  [[nodiscard]] CudnnValues image_gradient(const CudnnValues& gradient, const CudnnValues& weight) const {
    CudnnValues sums(count(image_));
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

  [[nodiscard]] CudnnValues weight_gradient(const CudnnValues& gradient, const CudnnValues& image) const {
    CudnnValues sums(count(weight_));
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

  [[nodiscard]] float output(const CudnnValues& image, const CudnnValues& weight, std::int64_t n, std::int64_t k,
                             std::int64_t p, std::int64_t q) const {
    CudnnSum sum(in_parts_);
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

  [[nodiscard]] float image_gradient(const CudnnValues& gradient, const CudnnValues& weight, std::int64_t n,
                                     std::int64_t c, std::int64_t y, std::int64_t x) const {
    CudnnSum sum(in_parts_);
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

  [[nodiscard]] float weight_gradient(const CudnnValues& gradient, const CudnnValues& image, std::int64_t k,
                                      std::int64_t c, std::int64_t r, std::int64_t s) const {
    CudnnSum sum(in_parts_);
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

CudnnValues convolve(const ConvolutionProgram& program, CudnnEngine engine, CudnnValues first, CudnnValues second) {
  const CudnnOperation& of = program.operations()[0];
  const CudnnTensor &a = program.tensor(of.first), &b = program.tensor(of.second);
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

/// On a stream.
class ConvolutionKernel final : public LibraryKernel {
 public:
  ConvolutionKernel(std::shared_ptr<const ConvolutionProgram> program, CudnnEngine engine, CudnnOperands operands)
      : program_(std::move(program)), engine_(engine), operands_(std::move(operands)) {}

  bool run(LibraryMemory& memory) override {
    LibraryOperands on(memory, kCudnnWho);
    const auto operand = [&](std::int64_t uid) {
      return read_tensor(on, program_->tensor(uid), operands_.memory.at(uid));
    };
    const CudnnOperation& first = program_->operations()[0];
    CudnnValues values = convolve(*program_, engine_, operand(first.first), operand(first.second));
    if (engine_ == CudnnEngine::in_parts) {
      on.write_workspace(operands_.workspace, values);
      values = on.read_workspace(operands_.workspace, values.size());
    }
    for (const CudnnOperation& one : program_->operations()) {
      if (one.kind == Kind::add) {
        const CudnnTensor &sums = program_->tensor(one.first), &other = program_->tensor(one.second);
        const CudnnValues added = operand(one.second);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] += added[place_of_broadcast(i, sums, other)];
      } else if (one.kind == Kind::relu) {
        std::ranges::transform(values, values.begin(), [](float value) { return value < 0 ? 0 : value; });
      }
    }
    const std::int64_t result = program_->operations().back().result;
    write_tensor(on, program_->tensor(result), operands_.memory.at(result), values);
    return true;
  }
  [[nodiscard]] LibraryCost cost() const override { return program_->cost(); }

 private:
  std::shared_ptr<const ConvolutionProgram> program_;
  CudnnEngine engine_;
  CudnnOperands operands_;
};

}  // namespace

LibraryCost ConvolutionProgram::cost() const {
  const CudnnOperation& first = operations_[0];
  // The window and a group's channels stand in the weight: [filters, channels of a group, height, width].
  const CudnnTensor& weight = first.kind == Kind::weight_gradient ? sums() : tensor(first.second);
  const CudnnTensor& output = first.kind == Kind::output ? sums() : tensor(first.first);
  const f64 window = static_cast<f64>(weight.elements()) / static_cast<f64>(weight.sizes[0]);
  return {"cuDNN", 2 * static_cast<f64>(output.elements()) * window, bytes_in_memory()};
}

std::shared_ptr<LibraryKernel> ConvolutionProgram::kernel(CudnnEngine engine, CudnnOperands operands) const {
  return std::make_shared<ConvolutionKernel>(std::static_pointer_cast<const ConvolutionProgram>(shared_from_this()),
                                             engine, std::move(operands));
}

}  // namespace lockstep::ptx
