#include "step/exec/parameters.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <new>
#include <numbers>
#include <numeric>
#include <utility>

#include "core/digest.hpp"
#include "core/round_up.hpp"
#include "lockstep/error.hpp"
#include "lockstep/random.hpp"

namespace lockstep::exec {

static_assert(std::endian::native == std::endian::little, "hashes and files are little-endian");

namespace {

std::shared_ptr<std::byte> zeroed(std::size_t bytes) {
  const auto block = std::make_shared<AlignedBytes>(bytes);
  if (bytes > 0) std::memset(block->data(), 0, bytes);
  return {block, block->data()};
}

/// Also zero. Uses small pages: the first write to a huge page would allocate all of it.
std::shared_ptr<std::byte> sparse(std::size_t bytes) {
  if (bytes == 0) return zeroed(0);
  void* const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  (void)madvise(pages, bytes, MADV_NOHUGEPAGE);
  return {static_cast<std::byte*>(pages), [bytes](std::byte* block) { munmap(block, bytes); }};
}

}  // namespace

std::vector<std::int64_t> TensorBlock::offsets_of(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<std::int64_t> offsets = {0};
  for (const ValueId id : ids) offsets.push_back(offsets.back() + whole_lines(graph.at(id).spec.elements()));
  return offsets;
}

void TensorBlock::lay_out(const Graph& graph, const std::vector<ValueId>& ids) {
  const std::vector<std::int64_t> offsets = offsets_of(graph, ids);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Value& value = graph.at(ids[i]);
    entries_.push_back({value.name, value.spec.shape, offsets[i], value.spec.elements()});
  }
}

TensorBlock::TensorBlock(const Graph& graph, const std::vector<ValueId>& ids) : memory_(zeroed(bytes_of(graph, ids))) {
  lay_out(graph, ids);
}

TensorBlock::TensorBlock(const Graph& graph, const std::vector<ValueId>& ids, std::vector<std::vector<Extent>> own,
                         std::shared_ptr<std::byte> memory)
    : own_(std::move(own)), memory_(memory ? std::move(memory) : sparse(bytes_of(graph, ids))) {
  LOCKSTEP_CHECK(own_.size() == ids.size(), "a list of what is kept for each tensor");
  lay_out(graph, ids);
}

TensorBlock::TensorBlock(const Graph& graph, const std::vector<ValueId>& ids, const std::vector<Shape>& shapes,
                         std::vector<std::vector<Extent>> own)
    : own_(std::move(own)) {
  LOCKSTEP_CHECK(own_.size() == ids.size() && shapes.size() == ids.size(), "shape and extents of each tensor");
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    entries_.push_back({graph.at(ids[i]).name, shapes[i], offset, lockstep::elements(shapes[i])});
    offset += whole_lines(entries_.back().elements);
  }
  memory_ = sparse(offset * sizeof(float));
}

std::vector<Extent> TensorBlock::own(std::size_t i) const {
  return own_.empty() ? std::vector<Extent>{{0, entries_[i].elements}} : own_[i];
}

std::int64_t TensorBlock::elements() const {
  std::int64_t sum = 0;
  for (const auto& entry : entries_) sum += entry.elements;
  return sum;
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
  const double u = (words[2 * pair] + 0.5) * 0x1p-32;
  const double v = (words[2 * pair + 1] + 0.5) * 0x1p-32;
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

}  // namespace

void initialize(const Initializer& initializer, std::uint64_t seed, const std::string& name, std::span<float> out,
                std::int64_t first) {
  using Kind = Initializer::Kind;
  if (initializer.kind == Kind::zeros || initializer.kind == Kind::ones || initializer.kind == Kind::constant) {
    const double value = initializer.kind == Kind::constant ? initializer.scale
                         : initializer.kind == Kind::ones   ? 1
                                                            : 0;
    std::fill(out.begin(), out.end(), static_cast<float>(value));
    return;
  }
  const std::uint64_t key = mix(seed, hash_name(name));
  const float scale = initializer.scale;
  for (std::size_t at = 0; at < out.size(); ++at) {
    const std::size_t i = first + at;
    const std::uint64_t block = i / 2;
    PhiloxWords counter{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0};
    PhiloxWords words = philox(key, counter);
    if (initializer.kind == Kind::uniform) {
      out[at] = scale * (2.0F * to_unit(words[i % 2]) - 1.0F);
      continue;
    }
    float value = normal(words, i % 2);
    // Truncated at two standard deviations: redraws, with the number of the try in the counter.
    while (initializer.kind == Kind::truncated_normal && std::abs(value) > 2.0F) {
      ++counter[2];
      words = philox(key, counter);
      value = normal(words, i % 2);
    }
    out[at] = scale * value;
  }
}

void initialize(const Graph& graph, const std::vector<ValueId>& ids, std::uint64_t seed, const TensorBlock& block) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    for (const Extent& own : block.own(i)) {
      initialize(graph.at(ids[i]).initializer, seed, block.name(i), block.at(i, own), own.begin);
    }
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
