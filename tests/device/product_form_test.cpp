#include "device/gpu/product_form.hpp"

#include <gtest/gtest.h>

#include "device/layer_algorithms.hpp"

namespace lockstep::device {

// Ranks use the form that rank 0 chose, identified by its name.
TEST(ProductForm, IsPartOfAPlansName) {
  const auto suffix = [](Epilogue epilogue, DType bias = DType::f32) { return suffix_of({{}, epilogue, bias}); };
  EXPECT_EQ(suffix(Epilogue::none), "");
  EXPECT_EQ(suffix(Epilogue::bias), "");
  EXPECT_EQ(suffix(Epilogue::gelu), ", gelu with its input kept");
  EXPECT_EQ(suffix(Epilogue::bias_gelu), ", gelu with its input kept");
  EXPECT_EQ(suffix(Epilogue::bias_gelu, DType::f16), ", gelu with its input kept, bias in f16");
  EXPECT_EQ(suffix(Epilogue::gelu_gradient), ", gelu's gradient");
  EXPECT_EQ(suffix(Epilogue::sums_of_b), ", bias's gradient");
}

TEST(ProductForm, IsReadBackFromAPlan) {
  const LayerAlgorithms parts{"A" + suffix_of({{}, Epilogue::bias_gelu, DType::bf16}),
                              "B" + suffix_of({{}, Epilogue::gelu_gradient}),
                              "C" + suffix_of({{}, Epilogue::sums_of_b})};
  const LayerAlgorithms read = LayerAlgorithms::of(parts.text());
  EXPECT_EQ(read.output, parts.output);
  EXPECT_EQ(read.input_gradient, parts.input_gradient);
  EXPECT_EQ(read.weight_gradient, parts.weight_gradient);
}

TEST(ProductForm, AuxLiesAsTheResult) {
  const ColumnProduct product{{16, 24, true}, {16, 5, false}};
  EXPECT_EQ(aux_stride(product), product.m());
  EXPECT_TRUE(aux_fits(product));
  EXPECT_FALSE(aux_fits({{16, 12, true}, {16, 5, false}}));
}

}  // namespace lockstep::device
