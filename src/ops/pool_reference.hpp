// The naive loops of the references of max_pool and avg_pool.
#pragma once

#include <functional>

#include "ops/op_case.hpp"
#include "ops/window.hpp"

namespace lockstep::ops {

/// y[n, i, j, c] = of(the values that the window covers, the number of taps in the padding).
inline ReferenceResult pool_reference(const PoolShape& s, const DoubleTensor& x,
                                      const std::function<double(const std::vector<double>&, std::int64_t)>& of) {
  const WindowShape& m = s.image;
  const WindowAxis &h = s.window.height, &w = s.window.width;
  DoubleTensor y{{m.batch, m.out_height, m.out_width, m.channels}, {}};
  for (std::int64_t at = 0; at < elements(y.shape); ++at) {
    const std::int64_t c = at % m.channels, j = at / m.channels % m.out_width;
    const std::int64_t i = at / m.channels / m.out_width % m.out_height;
    const std::int64_t n = at / m.channels / m.out_width / m.out_height;
    std::vector<double> covered;
    std::int64_t outside = 0;
    for (std::int64_t tap = 0; tap < h.kernel * w.kernel; ++tap) {
      const std::int64_t row = i * h.stride - h.before + tap / w.kernel,
                         column = j * w.stride - w.before + tap % w.kernel;
      if (row < 0 || row >= m.height || column < 0 || column >= m.width) {
        ++outside;
      } else {
        covered.push_back(x.values.at(((n * m.height + row) * m.width + column) * m.channels + c));
      }
    }
    y.values.push_back(of(covered, outside));
  }
  return {{y}, {}};
}

/// All kinds of windows on small images, and two benchmarks.
inline std::vector<OpCase> pool_cases() {
  using Int = std::int64_t;
  const auto attributes = [](Attribute kernel, std::map<std::string, Attribute> more = {}) {
    more["kernel"] = std::move(kernel);
    return Attributes(std::move(more));
  };
  const Attribute one = Int{1}, two = Int{2}, three = Int{3}, tall = std::vector<Int>{3, 1},
                  wide = std::vector<Int>{1, 2}, every_second = std::vector<Int>{2, 1},
                  nine_columns = std::vector<Int>{1, 9}, six = Int{6};
  return {
      {.name = "halve", .attributes = attributes(two), .inputs = {{DType::f32, {2, 6, 4, 5}}}},
      {.name = "rest_left_out", .attributes = attributes(two), .inputs = {{DType::f32, {3, 5, 7, 16}}}},
      {.name = "overlap",
       .attributes = attributes(three, {{"stride", two}, {"padding", one}}),
       .inputs = {{DType::f32, {2, 8, 7, 33}}}},
      {.name = "overlap_in_packs",
       .attributes = attributes(three, {{"stride", two}, {"padding", one}}),
       .inputs = {{DType::f32, {2, 7, 8, 24}}}},
      {.name = "same",
       .attributes = attributes(three, {{"stride", one}, {"padding", std::string("same")}}),
       .inputs = {{DType::f32, {1, 4, 5, 3}}}},
      {.name = "tall", .attributes = attributes(tall, {{"stride", wide}}), .inputs = {{DType::f32, {2, 4, 5, 2}}}},
      {.name = "one_dimension",
       .attributes = attributes(tall, {{"stride", every_second}, {"padding", std::string("same")}}),
       .inputs = {{DType::f32, {2, 11, 1, 8}}}},
      {.name = "gaps", .attributes = attributes(one, {{"stride", two}}), .inputs = {{DType::f32, {2, 5, 5, 2}}}},
      {.name = "many_windows_of_a_pixel",
       .attributes = attributes(six, {{"stride", one}, {"padding", std::string("same")}}),
       .inputs = {{DType::f32, {1, 9, 8, 3}}}},
      {.name = "many_windows_of_a_pixel_in_packs",
       .attributes = attributes(six, {{"stride", one}, {"padding", std::string("same")}}),
       .inputs = {{DType::f32, {1, 9, 8, 8}}}},
      {.name = "nine_columns",
       .attributes = attributes(nine_columns, {{"stride", one}}),
       .inputs = {{DType::f32, {2, 2, 11, 3}}}},
      {.name = "nine_columns_in_packs",
       .attributes = attributes(nine_columns, {{"stride", one}}),
       .inputs = {{DType::f32, {2, 2, 11, 8}}}},
      {.name = "inference",
       .attributes = attributes(two),
       .inputs = {{DType::f32, {2, 4, 4, 18}}},
       .mode = Mode::inference},
      {.name = "speed_halve",
       .attributes = attributes(two),
       .inputs = {{DType::f32, {16, 28, 28, 32}}},
       .benchmark = true},
      {.name = "speed_overlap",
       .attributes = attributes(three, {{"stride", two}, {"padding", one}}),
       .inputs = {{DType::f32, {4, 112, 112, 64}}},
       .benchmark = true},
  };
}

}  // namespace lockstep::ops
