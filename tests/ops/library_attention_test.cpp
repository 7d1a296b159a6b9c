// attention by a library stand-in that only records its calls: where it is told to write which gradient.
#include "ops/attention/library_attention.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace lockstep::ops {

namespace {

/// A stand-in for device::CudnnAttention.
class NotedAttention {
 public:
  struct Operands {
    const void *q = nullptr, *k = nullptr, *v = nullptr;
    void* out = nullptr;
    float* log_sums = nullptr;
    const void* dout = nullptr;
    void *dq = nullptr, *dk = nullptr, *dv = nullptr;
  };
  NotedAttention(std::size_t workspace, std::vector<Operands>& calls) : workspace_(workspace), calls_(&calls) {}
  [[nodiscard]] std::size_t workspace_bytes() const { return workspace_; }
  [[nodiscard]] static std::string name() { return "noted"; }
  void run(const GpuStream& /*stream*/, const Operands& operands, void* /*workspace*/) const {
    calls_->push_back(operands);
  }

 private:
  std::size_t workspace_;
  std::vector<Operands>* calls_;
};

struct Range {
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;
  [[nodiscard]] bool overlaps(const Range& other) const {
    return begin < other.begin + other.bytes && other.begin < begin + bytes;
  }
};

class LibraryAttentions : public testing::Test {
 protected:
  // the library's own workspace, in bytes
  static constexpr std::size_t kOutput = 1000, kGradients = 1300, kAligned = 1536;

  static AttentionSizes sizes(std::int64_t queries, std::int64_t keys) {
    const TensorSpec of_keys{DType::bf16, {2, keys, 24}};
    return {Attributes({{"heads", std::int64_t{3}}, {"causal", false}}),
            std::array{TensorSpec{DType::bf16, {2, queries, 24}}, of_keys, of_keys}};
  }
  LibraryAttention<NotedAttention> kernel(const AttentionSizes& sizes) {
    return {sizes, NotedAttention(kOutput, calls_), NotedAttention(kGradients, calls_)};
  }
  /// The operands of one backward call that wants some of the gradients.
  NotedAttention::Operands gradients_of(const AttentionSizes& sizes, const std::array<void*, 3>& wanted,
                                        void* workspace) {
    const std::array<const void*, 3> inputs{};
    const std::array<const void*, 1> one{};
    calls_.clear();
    kernel(sizes).backward({.inputs = inputs,
                            .outputs = one,
                            .saved = one,
                            .output_gradients = one,
                            .input_gradients = wanted,
                            .workspace = workspace,
                            .stream = &stream_});
    return calls_.empty() ? NotedAttention::Operands{} : calls_.front();
  }

  std::vector<NotedAttention::Operands> calls_;
  std::byte stream_{};  // never accessed
};

}  // namespace

TEST_F(LibraryAttentions, EachGradientThatNobodyWantsHasAPlaceOfItsOwn) {
  for (const auto& [queries, keys] : {std::pair{5, 7}, std::pair{7, 5}, std::pair{6, 6}}) {
    const AttentionSizes sizes = LibraryAttentions::sizes(queries, keys);
    const std::size_t of_query = 2UL * queries * 24 * 2, of_key = 2UL * keys * 24 * 2;
    const std::array<std::size_t, 3> bytes = {of_query, of_key, of_key};
    std::vector<std::byte> workspace(kernel(sizes).workspace_bytes());
    std::array<std::vector<std::byte>, 3> tensors;
    for (std::size_t i = 0; i < 3; ++i) tensors[i].resize(bytes[i]);
    for (unsigned wanted = 1; wanted < 8; ++wanted) {
      std::array<void*, 3> gradients{};
      for (std::size_t i = 0; i < 3; ++i) gradients[i] = (wanted >> i & 1U) != 0 ? tensors[i].data() : nullptr;
      const auto told = gradients_of(sizes, gradients, workspace.data());
      const std::array<void*, 3> places = {told.dq, told.dk, told.dv};
      std::vector<Range> ranges = {{workspace.data(), kGradients}};  // the library's own workspace
      for (std::size_t i = 0; i < 3; ++i) {
        const Range place{static_cast<std::byte*>(places[i]), bytes[i]};
        for (const Range& other : ranges) EXPECT_FALSE(place.overlaps(other)) << wanted << ", gradient " << i;
        ranges.push_back(place);
        if (gradients[i] != nullptr) {
          EXPECT_EQ(places[i], gradients[i]);
          continue;
        }
        const std::ptrdiff_t offset = place.begin - workspace.data();
        EXPECT_EQ(offset % 256, 0) << "as libraries want it";
        EXPECT_GE(offset, static_cast<std::ptrdiff_t>(kAligned));
        EXPECT_LE(offset + bytes[i], workspace.size()) << queries << " queries, " << keys << " keys, " << wanted;
      }
    }
    (void)gradients_of(sizes, {}, workspace.data());
    EXPECT_TRUE(calls_.empty()) << "nobody wants any";
  }
}

TEST_F(LibraryAttentions, OneTensorOfAllThreeNeedsNoRoom) {
  const AttentionSizes packed(Attributes({{"heads", std::int64_t{3}}, {"causal", true}}),
                              std::array{TensorSpec{DType::bf16, {2, 5, 72}}});
  EXPECT_EQ(kernel(packed).workspace_bytes(), kAligned);
  std::vector<std::uint16_t> gradient(2UL * 5 * 72);
  const auto told = gradients_of(packed, {gradient.data(), nullptr, nullptr}, nullptr);
  EXPECT_EQ(told.dq, gradient.data());
  EXPECT_EQ(told.dk, gradient.data() + 24);
  EXPECT_EQ(told.dv, gradient.data() + 48);
}

TEST_F(LibraryAttentions, InferenceNeedsTheLibrarysRoomAlone) {
  const LibraryAttention<NotedAttention> alone(sizes(5, 7), NotedAttention(kOutput, calls_), std::nullopt);
  EXPECT_EQ(alone.workspace_bytes(), 1024U);
  EXPECT_EQ(alone.algorithms(), "output: noted");
}

}  // namespace lockstep::ops
