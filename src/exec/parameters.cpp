#include "exec/parameters.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>

#include "core/digest.hpp"
#include "core/philox.hpp"

namespace lockstep::exec {

static_assert(std::endian::native == std::endian::little, "hashes and files are little-endian");

TensorBlock::TensorBlock(const Graph& graph, const std::vector<ValueId>& ids) {
  std::int64_t offset = 0;
  for (const ValueId id : ids) {
    const Value& value = graph.at(id);
    entries_.push_back({value.name, value.spec.shape, offset, value.spec.elements()});
    offset += (value.spec.elements() + 15) / 16 * 16;
  }
  bytes_ = AlignedBytes(static_cast<std::size_t>(offset) * sizeof(float));
  fill_zero();
}

std::int64_t TensorBlock::elements() const {
  std::int64_t sum = 0;
  for (const auto& entry : entries_) sum += entry.elements;
  return sum;
}

void TensorBlock::fill_zero() {
  std::memset(bytes_.data(), 0, bytes_.size());
}

std::shared_ptr<const ModelView> view_of(const TensorBlock& parameters, const TensorBlock& states) {
  auto view = std::make_shared<ModelView>();
  for (std::size_t i = 0; i < parameters.size(); ++i) view->parameters.push_back(parameters.at(i).data());
  for (std::size_t i = 0; i < states.size(); ++i) view->states.push_back(states.at(i).data());
  view->channels_last.resize(parameters.size());
  return view;
}

namespace {

// Box-Muller on two words, in double; one value per counter pair keeps it simple: element i uses words 2(i%2).
float normal(const PhiloxWords& words, std::size_t pair) {
  const double u = (static_cast<double>(words[2 * pair]) + 0.5) * 0x1p-32;
  const double v = (static_cast<double>(words[2 * pair + 1]) + 0.5) * 0x1p-32;
  return static_cast<float>(std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v));
}

}  // namespace

void initialize(const Initializer& initializer, std::uint64_t seed, const std::string& name, std::span<float> out) {
  using Kind = Initializer::Kind;
  if (initializer.kind == Kind::zeros || initializer.kind == Kind::ones || initializer.kind == Kind::constant) {
    const double value = initializer.kind == Kind::constant ? initializer.scale
                         : initializer.kind == Kind::ones   ? 1
                                                            : 0;
    std::fill(out.begin(), out.end(), static_cast<float>(value));
    return;
  }
  const std::uint64_t key = mix(seed, hash_name(name));
  const auto scale = static_cast<float>(initializer.scale);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t block = i / 2;
    PhiloxWords counter{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0};
    PhiloxWords words = philox(key, counter);
    if (initializer.kind == Kind::uniform) {
      out[i] = scale * (2.0F * to_unit(words[i % 2]) - 1.0F);
      continue;
    }
    float value = normal(words, i % 2);
    // Truncated at two standard deviations: redraw, with the try in the counter.
    while (initializer.kind == Kind::truncated_normal && std::abs(value) > 2.0F) {
      ++counter[2];
      words = philox(key, counter);
      value = normal(words, i % 2);
    }
    out[i] = scale * value;
  }
}

std::string sha256_of(const TensorBlock& block) {
  std::vector<std::size_t> order(block.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return block.name(a) < block.name(b); });
  Sha256 hash;
  for (const auto i : order) hash.add(std::as_bytes(block.at(i)));
  return hash.hex();
}

}  // namespace lockstep::exec
