#include "ops/matmul/matmul_sizes.hpp"
#include "ops/op_case.hpp"

namespace lockstep::ops {

namespace {

ReferenceResult matmul_reference(const ReferenceCall& call) {
  const DoubleTensor &a = call.inputs[0], &b = call.inputs[1];
  const MatmulSizes s(call.attributes, std::vector<TensorSpec>{{DType::f32, a.shape}, {DType::f32, b.shape}});
  DoubleTensor y{a.shape, {}};
  y.shape.back() = s.n;
  for (std::int64_t i = 0; i < s.count * s.m * s.n; ++i) {
    const std::int64_t pair = i / (s.m * s.n), row = i / s.n, column = i % s.n;
    double sum = 0;
    for (std::int64_t k = 0; k < s.k; ++k) {
      const std::int64_t of_pair = s.transposed ? column * s.k + k : k * s.n + column;
      sum += a.values[row * s.k + k] * b.values[pair * s.k * s.n + of_pair];
    }
    y.values.push_back(sum);
  }
  return {{y}, {}};
}

std::vector<TensorSpec> matrices(Shape a, Shape b) {
  return {{DType::f32, std::move(a)}, {DType::f32, std::move(b)}};
}

}  // namespace

OpCases make_matmul_cases() {
  const Attributes plain, transposed({{"transpose", true}});
  return {"matmul",
          matmul_reference,
          {
              {.name = "odd", .attributes = plain, .inputs = matrices({2, 3, 5}, {2, 5, 7})},
              {.name = "odd_transposed", .attributes = transposed, .inputs = matrices({2, 3, 5}, {2, 7, 5})},
              {.name = "heads", .attributes = plain, .inputs = matrices({2, 3, 4, 6}, {2, 3, 6, 4})},
              {.name = "heads_transposed", .attributes = transposed, .inputs = matrices({2, 3, 4, 6}, {2, 3, 5, 6})},
              {.name = "five_dimensions", .attributes = plain, .inputs = matrices({2, 1, 3, 2, 4}, {2, 1, 3, 4, 2})},
              {.name = "one_row", .attributes = plain, .inputs = matrices({3, 1, 9}, {3, 9, 5})},
              {.name = "one_column_transposed", .attributes = transposed, .inputs = matrices({3, 9, 5}, {3, 1, 5})},
              {.name = "outer", .attributes = plain, .inputs = matrices({2, 6, 1}, {2, 1, 5})},
              {.name = "tiles", .attributes = plain, .inputs = matrices({2, 67, 40}, {2, 40, 72})},
              {.name = "tiles_transposed", .attributes = transposed, .inputs = matrices({2, 67, 40}, {2, 72, 40})},
              {.name = "odd_tiles", .attributes = plain, .inputs = matrices({2, 67, 37}, {2, 37, 35})},
              {.name = "odd_tiles_transposed", .attributes = transposed, .inputs = matrices({2, 67, 37}, {2, 35, 37})},
              {.name = "blocks_of_depth", .attributes = plain, .inputs = matrices({1, 3, 300}, {1, 300, 4})},
              {.name = "empty", .attributes = plain, .inputs = matrices({0, 3, 5}, {0, 5, 7})},
              {.name = "empty_transposed", .attributes = transposed, .inputs = matrices({0, 3, 5}, {0, 7, 5})},
              {.name = "speed_scores",
               .attributes = transposed,
               .inputs = matrices({1, 4, 128, 64}, {1, 4, 128, 64}),
               .benchmark = true},
              {.name = "speed_weighted",
               .attributes = plain,
               .inputs = matrices({1, 4, 128, 128}, {1, 4, 128, 64}),
               .benchmark = true},
          },
          CpuOrder::its_own};
}

}  // namespace lockstep::ops
