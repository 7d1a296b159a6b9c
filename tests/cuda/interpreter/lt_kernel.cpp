#include "cuda/interpreter/lt_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace lockstep::ptx {

namespace {

constexpr const char* kLtWho = "a product of cuBLASLt";
constexpr std::int64_t kLtPart = 16;  // of LtAlgorithm::in_parts, along k

std::size_t lt_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

// gelu's tanh form. s: tanh's argument, sqrt(2 / pi) (x + 0.044715 x^3).
constexpr float kFactor = 0.7978845608F, kCubic = 0.044715F;
float lt_gelu(float x) {
  return 0.5F * x * (1 + std::tanh(kFactor * (x + kCubic * x * x * x)));
}
float lt_gelu_gradient(float x) {
  const float t = std::tanh(kFactor * (x + kCubic * x * x * x));
  return 0.5F * (1 + t) + 0.5F * x * (1 - t * t) * kFactor * (1 + 3 * kCubic * x * x);
}

}  // namespace

std::string LtProblem::text() const {
  const auto matrix = [](const LtMatrix& one) {
    return fmt::format("{} {}x{}/{}", static_cast<int>(one.element), one.rows, one.columns, one.step);
  };
  return fmt::format("{}, {}, {}, {}{}{}, {}, {}, {}", matrix(a), matrix(b), matrix(d), a_transposed, b_transposed,
                     tf32, static_cast<int>(epilogue), adds_bias() || sums_b() ? static_cast<int>(vector) : -1,
                     has_aux() ? aux_step : 0);
}

std::size_t lt_workspace_bytes(const LtProblem& problem, LtAlgorithm algorithm) {
  if (algorithm == LtAlgorithm::plain) return 0;
  return lt_size(problem.d.rows * problem.d.columns) * sizeof(float);
}

std::vector<float> LtKernel::factor(LibraryOperands& on, const LtMatrix& matrix, const void* from, bool transposed) {
  std::vector<float> values(lt_size(matrix.rows * matrix.columns));
  for (std::int64_t column = 0; column < matrix.columns; ++column) {
    const auto read = on.read(matrix.element, from, column * matrix.step, lt_size(matrix.rows));
    for (std::int64_t row = 0; row < matrix.rows; ++row) {
      values[lt_size(transposed ? row * matrix.columns + column : column * matrix.rows + row)] = read[lt_size(row)];
    }
  }
  return values;
}

std::vector<float> LtKernel::sums(const std::vector<float>& a, const std::vector<float>& b) const {
  const std::int64_t m = problem_.d.rows, n = problem_.d.columns, k = problem_.k();
  const std::int64_t part = algorithm_ == LtAlgorithm::plain ? k : kLtPart;
  std::vector<float> all(lt_size(m * n)), of_part(lt_size(m));
  for (std::int64_t column = 0; column < n; ++column) {
    float* const to = all.data() + column * m;
    for (std::int64_t first = 0; first < k; first += part) {
      std::ranges::fill(of_part, 0.0F);
      for (std::int64_t i = first; i < std::min(first + part, k); ++i) {
        const float factor = b[lt_size(column * k + i)];
        for (std::int64_t row = 0; row < m; ++row) of_part[lt_size(row)] += a[lt_size(i * m + row)] * factor;
      }
      for (std::int64_t row = 0; row < m; ++row) to[row] += of_part[lt_size(row)];
    }
  }
  return all;
}

void LtKernel::finish(LibraryOperands& on, std::vector<float> sums, const std::vector<float>& b) const {
  const std::int64_t m = problem_.d.rows, n = problem_.d.columns, k = problem_.k();
  const Element element = problem_.d.element;
  std::vector<float> bias;
  if (problem_.adds_bias()) bias = on.read(problem_.vector, of_.vector, 0, lt_size(m));
  for (std::int64_t column = 0; column < n; ++column) {
    const std::span<float> values(sums.data() + column * m, lt_size(m));
    for (std::size_t row = 0; row < bias.size(); ++row) values[row] += bias[row];
    if (problem_.takes_gelu()) {
      on.write(element, of_.aux, column * problem_.aux_step, values);
      std::ranges::transform(values, values.begin(), lt_gelu);
    } else if (problem_.takes_gelu_gradient()) {
      const auto x = on.read(element, of_.aux, column * problem_.aux_step, lt_size(m));
      for (std::size_t row = 0; row < x.size(); ++row) values[row] *= lt_gelu_gradient(x[row]);
    }
    on.write(element, of_.d, column * problem_.d.step, values);
  }
  if (!problem_.sums_b()) return;
  std::vector<float> columns(lt_size(n));
  for (std::int64_t i = 0; i < n * k; ++i) columns[lt_size(i / k)] += b[lt_size(i)];
  on.write(problem_.vector, of_.vector, 0, columns);
}

LibraryCost LtKernel::cost() const {
  const auto bytes = [](const LtMatrix& one) {
    return static_cast<f64>(one.rows * one.columns) * static_cast<f64>(bytes_of(one.element));
  };
  const f64 all = bytes(problem_.a) + bytes(problem_.b) + (problem_.has_aux() ? 2 : 1) * bytes(problem_.d);
  const f64 results = static_cast<f64>(problem_.d.rows) * static_cast<f64>(problem_.d.columns);
  return {"cuBLASLt", 2 * results * static_cast<f64>(problem_.k()), all};
}

bool LtKernel::run(LibraryMemory& memory) {
  LibraryOperands on(memory, kLtWho);
  auto a = factor(on, problem_.a, of_.a, problem_.a_transposed);
  auto b = factor(on, problem_.b, of_.b, problem_.b_transposed);
  const auto unrounded_b = problem_.sums_b() ? b : std::vector<float>();
  if (problem_.tf32) {
    std::ranges::transform(a, a.begin(), in_tf32);
    std::ranges::transform(b, b.begin(), in_tf32);
  }
  auto all = sums(a, b);
  if (lt_workspace_bytes(problem_, algorithm_) > 0) {
    on.write_workspace(of_.workspace, all);
    all = on.read_workspace(of_.workspace, all.size());
  }
  finish(on, std::move(all), unrounded_b);
  return true;
}

}  // namespace lockstep::ptx
