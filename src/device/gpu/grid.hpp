// Grids: how the functor of a GPU kernel is distributed over threads. A functor is written once, as a function object;
// CudaGrid (device/cuda/cuda_grid.cuh) runs it on a GPU, HostGrid, below, on the CPU, over the same elements of the
// same grid and with the same sums, so that tests can check indices and bits without a GPU.
//
//   Grid::each(stream, n, functor)      functor(i) for i = 0 ... n - 1, in any order;
//                                       or functor.store(i, functor.value(i)), see below
//   Grid::rows(stream, count, functor)  functor(group, row) for row = 0 ... count - 1;
//                                       a row has a group of kGroupLanes threads
//   Grid::staged_rows(stream, count, floats, functor)
//                                       functor(group, row, memory), with so many floats of shared memory
//   Grid::product(stream, product)      a product of matrices, see product.hpp
//
// Lane l of a group takes elements l, l + kGroupLanes, ... of its row. This, and the order in which lanes are combined,
// is what device/cpu/reduce.hpp does with vectors, so sums have the CPU's bits.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/host_device.hpp"
#include "device/gpu/kernel_options.hpp"
#include "device/gpu/product.hpp"
#include "device/gpu/staged_row.hpp"

namespace lockstep::device {

inline constexpr int kBlockThreads = 256;
inline constexpr int kGroupLanes = 16;
inline constexpr int kBlockGroups = kBlockThreads / kGroupLanes;

/// A functor in two parts: value(i) reads, and store(i, value) writes the result of element i, wherever that is. No
/// value() except value(i) may read what store(i) writes. A thread then reads kAhead elements before it writes the
/// first: a compiler cannot do so itself, since a write could change what is read next, and reading one element at a
/// time leaves most of a GPU's memory bandwidth unused.
template <class Functor>
concept ReadsAhead = requires(const Functor& functor, std::int64_t i) {
  functor.store(i, functor.value(i));
};
inline constexpr int kAhead = 8;

/// Elements per thread of a grid over elements, kBlockThreads apart: neighbouring threads read neighbouring elements.
template <class Functor>
inline constexpr int kElementsOfThread = ReadsAhead<Functor> ? kAhead : 1;

/// Number of blocks for n elements, or for n rows.
template <class Functor>
constexpr std::int64_t blocks_of_elements(std::int64_t n) {
  constexpr std::int64_t kElements = std::int64_t{kBlockThreads} * kElementsOfThread<Functor>;
  return (n + kElements - 1) / kElements;
}
constexpr std::int64_t blocks_of_rows(std::int64_t n) {
  return (n + kBlockGroups - 1) / kBlockGroups;
}

// Functors that several rooms need.

/// to[i] = from[i]
template <class From, class To = From>
struct CopyFunctor {
  const From* from;
  To* to;
  LOCKSTEP_HOST_DEVICE From value(std::int64_t i) const { return from[i]; }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, From value) const { to[i] = value; }
};

/// out[i] = left[i] + right[i]; out may be one of them.
template <class T>
struct AddFunctor {
  const T *left, *right;
  T* out;
  LOCKSTEP_HOST_DEVICE float value(std::int64_t i) const { return left[i] + right[i]; }
  LOCKSTEP_HOST_DEVICE void store(std::int64_t i, float value) const { out[i] = value; }
};

/// The work of one thread of a grid over elements.
template <class Functor>
LOCKSTEP_HOST_DEVICE void element_at(std::int64_t block, int thread, std::int64_t n, const Functor& functor) {
  constexpr std::int64_t kThreads = kBlockThreads;
  const std::int64_t first = block * kThreads * kElementsOfThread<Functor> + thread;
  if constexpr (!ReadsAhead<Functor>) {
    if (first < n) functor(first);
  } else if (first + (kAhead - 1) * kThreads < n) {
    decltype(functor.value(first)) values[kAhead];  // in registers, which an index that is not constant would forbid
    LOCKSTEP_UNROLL
    for (int k = 0; k < kAhead; ++k) values[k] = functor.value(first + k * kThreads);
    LOCKSTEP_UNROLL
    for (int k = 0; k < kAhead; ++k) functor.store(first + k * kThreads, values[k]);
  } else {
    for (std::int64_t i = first; i < n && i < first + kAhead * kThreads; i += kThreads)
      functor.store(i, functor.value(i));
  }
}

/// The work of the threads of one group of a grid over rows.
template <class Group, class Functor>
LOCKSTEP_HOST_DEVICE void row_at(std::int64_t block, int group, std::int64_t count, Group& lanes,
                                 const Functor& functor) {
  const std::int64_t row = block * kBlockGroups + group;
  if (row < count) functor(lanes, row);
}

/// Calls function(i) for this lane's elements of a row of n, in order.
template <class Function>
LOCKSTEP_HOST_DEVICE void for_lane(int lane, std::int64_t n, const Function& function) {
  for (std::int64_t i = lane; i < n; i += kGroupLanes) function(i);
}

/// Sum of function(i) for this lane's elements of a row of n, in order. A lane reads several elements before it adds
/// the first.
template <class Function>
LOCKSTEP_HOST_DEVICE float sum_for_lane(int lane, std::int64_t n, const Function& function) {
  constexpr std::int64_t kLanes = kGroupLanes;
  float total = 0;
  std::int64_t i = lane;
  for (; i + (kAhead - 1) * kLanes < n; i += kAhead * kLanes) {
    float terms[kAhead];
    for (int k = 0; k < kAhead; ++k) terms[k] = function(i + k * kLanes);
    for (int k = 0; k < kAhead; ++k) total += terms[k];
  }
  for (; i < n; i += kLanes) total += function(i);
  return total;
}

/// Calls store(i, value(i)) for this lane's elements of a row of n. A lane reads several elements before it writes the
/// first; see ReadsAhead.
template <class Value, class Store>
LOCKSTEP_HOST_DEVICE void for_lane(int lane, std::int64_t n, const Value& value, const Store& store) {
  constexpr std::int64_t kLanes = kGroupLanes;
  std::int64_t i = lane;
  for (; i + (kAhead - 1) * kLanes < n; i += kAhead * kLanes) {
    decltype(value(i)) values[kAhead];
    LOCKSTEP_UNROLL
    for (int k = 0; k < kAhead; ++k) values[k] = value(i + k * kLanes);
    LOCKSTEP_UNROLL
    for (int k = 0; k < kAhead; ++k) store(i + k * kLanes, values[k]);
  }
  for (; i < n; i += kLanes) store(i, value(i));
}

/// A lane's elements of a row that is kept in registers, so that memory is read once, and all of it before the first
/// element is used: element k is that of the row at lane + k * kGroupLanes. A row of n elements, 0 < n <= kMost *
/// kGroupLanes; `kWhole`: n is the largest. Sums have the order of sum_for_lane().
template <class T, int kMost, bool kWhole>
struct LaneElements {
  T values[kMost];

  [[nodiscard]] static LOCKSTEP_HOST_DEVICE bool has(int lane, int n, int k) {
    return kWhole || lane + k * kGroupLanes < n;
  }
  /// values[k] = read(i). Behind the row's end it is the last element that is read: no load depends on a branch.
  template <class Read>
  LOCKSTEP_HOST_DEVICE void read(int lane, int n, const Read& read) {
    LOCKSTEP_UNROLL
    for (int k = 0; k < kMost; ++k) values[k] = read(has(lane, n, k) ? lane + k * kGroupLanes : n - 1);
  }
  template <class Term>
  LOCKSTEP_HOST_DEVICE float sum(int lane, int n, const Term& term) const {
    float total = 0;
    LOCKSTEP_UNROLL
    for (int k = 0; k < kMost; ++k) total += has(lane, n, k) ? term(values[k]) : 0.0F;
    return total;
  }
  template <class Term, class Larger>
  LOCKSTEP_HOST_DEVICE float maximum(int lane, int n, const Term& term, const Larger& larger) const {
    float best = -__builtin_inff();
    LOCKSTEP_UNROLL
    for (int k = 0; k < kMost; ++k) best = has(lane, n, k) ? larger(term(values[k]), best) : best;
    return best;
  }
};

/// Runs one group after another, and lane after lane.
class HostGroup {
  // Before it is used: its type is deduced.
  template <class Lanes>
  static auto& of(Lanes& lanes, int lane) {
    return lanes[lane];
  }

 public:
  /// Of all lanes: LaneElements.
  template <class Elements>
  using Row = std::array<Elements, kGroupLanes>;

  /// Calls function(i) for each element of a row, lane by lane.
  template <class Function>
  void each(std::int64_t n, const Function& function) const {
    for (int lane = 0; lane < kGroupLanes; ++lane) for_lane(lane, n, function);
  }
  /// Calls store(i, value(i)) for each element of a row.
  template <class Value, class Store>
  void each(std::int64_t n, const Value& value, const Store& store) const {
    for (int lane = 0; lane < kGroupLanes; ++lane) for_lane(lane, n, value, store);
  }
  /// The same with a row that lanes keep: see LaneElements.
  template <class Elements, class Read>
  void read(Row<Elements>& row, int n, const Read& read) const {
    for (int lane = 0; lane < kGroupLanes; ++lane) of(row, lane).read(lane, n, read);
  }
  template <class Elements, class Term>
  float sum(const Row<Elements>& row, int n, const Term& term) const {
    std::array<float, kGroupLanes> lanes{};
    for (int lane = 0; lane < kGroupLanes; ++lane) of(lanes, lane) = of(row, lane).sum(lane, n, term);
    return combine(lanes, [](float a, float b) { return a + b; });
  }
  template <class Elements, class Term>
  float maximum(const Row<Elements>& row, int n, const Term& term) const {
    std::array<float, kGroupLanes> lanes{};
    for (int lane = 0; lane < kGroupLanes; ++lane) of(lanes, lane) = of(row, lane).maximum(lane, n, term, larger);
    return combine(lanes, larger);
  }
  /// Sum of function(i) over a row of n; every lane gets it.
  template <class Function>
  float sum(std::int64_t n, const Function& function) const {
    std::array<float, kGroupLanes> lanes{};
    for (int lane = 0; lane < kGroupLanes; ++lane) {
      lanes[lane] = sum_for_lane(lane, n, function);
    }
    return combine(lanes, [](float a, float b) { return a + b; });
  }
  /// The largest function(i); -infinity for an empty row. NaNs are ignored.
  template <class Function>
  float maximum(std::int64_t n, const Function& function) const {
    std::array<float, kGroupLanes> lanes{};
    for (int lane = 0; lane < kGroupLanes; ++lane) {
      float& best = lanes[lane];
      best = -__builtin_inff();
      for_lane(lane, n, [&](std::int64_t i) { best = larger(function(i), best); });
    }
    return combine(lanes, larger);
  }
  /// to[i] = from[i] for a row of n in shared memory; see stage_for_lane().
  template <class T>
  void stage(const T* from, std::int64_t n, float* to) const {
    for (int lane = 0; lane < kGroupLanes; ++lane) stage_for_lane<kGroupLanes>(lane, n, from, to);
  }
  /// to[i] = from[i] * factors[i] likewise; see stage_product_for_lane().
  template <class T>
  void stage_product(const T* from, const float* factors, std::int64_t n, float* to) const {
    for (int lane = 0; lane < kGroupLanes; ++lane) stage_product_for_lane<kGroupLanes>(lane, n, from, factors, to);
  }
  /// Writes the pack make(i) to `to` + i for all packs of a row of n; see write_packs_for_lane().
  template <class T, class Make>
  void write_packs(T* to, std::int64_t n, const Make& make) const {
    for (int lane = 0; lane < kGroupLanes; ++lane) write_packs_for_lane<kGroupLanes>(lane, n, to, make);
  }
  /// After it, every lane sees what any lane has written before. Nothing to do here: the lanes of a call have finished.
  void barrier() const {}
  /// Calls function() in one lane only.
  template <class Function>
  void once(const Function& function) const {
    function();
  }

 private:
  static float larger(float a, float b) { return a > b ? a : b; }
  // Lane l is combined with lane l ^ 8, then 4, 2, 1, as a GPU's shuffles do in all lanes at once.
  template <class Combine>
  static float combine(std::array<float, kGroupLanes> lanes, const Combine& both) {
    for (std::size_t distance = kGroupLanes / 2; distance > 0; distance /= 2) {
      for (std::size_t lane = 0; lane < distance; ++lane) lanes[lane] = both(lanes[lane], lanes[lane + distance]);
    }
    return lanes[0];
  }
};

struct HostGrid {
  template <class Functor>
  static void each(GpuStream* /*stream*/, std::int64_t n, const Functor& functor) {
    for (std::int64_t block = 0; block < blocks_of_elements<Functor>(n); ++block) {
      for (int thread = 0; thread < kBlockThreads; ++thread) element_at(block, thread, n, functor);
    }
  }
  template <class Functor>
  static void rows(GpuStream* /*stream*/, std::int64_t count, const Functor& functor) {
    HostGroup lanes;
    for (std::int64_t block = 0; block < blocks_of_rows(count); ++block) {
      for (int group = 0; group < kBlockGroups; ++group) row_at(block, group, count, lanes, functor);
    }
  }
  template <class Functor>
  static void staged_rows(GpuStream* /*stream*/, std::int64_t count, std::int64_t floats, const Functor& functor) {
    HostGroup lanes;
    std::vector<float> memory;
    for (std::int64_t row = 0; row < count; ++row) {
      memory.assign(floats, __builtin_nanf(""));  // what the row before had is not there
      functor(lanes, row, memory.data());
    }
  }
  /// Element by element, without tiles.
  template <class Product>
  static void product(GpuStream* /*stream*/, const Product& product) {
    for (std::int64_t group = 0; group < product.groups; ++group) {
      for (std::int64_t row = 0; row < product.rows; ++row) {
        for (std::int64_t column = 0; column < product.columns; ++column) {
          product.store(group, row, column, sum_of(product, group, row, column));
        }
      }
    }
  }

 private:
  template <class Product>
  static float sum_of(const Product& product, std::int64_t group, std::int64_t row, std::int64_t column) {
    const auto term = [&](std::int64_t k) {
      return operand_value(product.left, group, row, k) * operand_value(product.right, group, column, k);
    };
    if constexpr (Product::kOrder == SumOrder::lanes) return HostGroup().sum(product.depth, term);
    if constexpr (Product::kOrder == SumOrder::fused) return fused_sum_of(product, group, row, column);
    float sum = 0;
    for (std::int64_t k = 0; k < product.depth; ++k) sum += term(k);
    return sum;
  }
  template <class Product>
  static float fused_sum_of(const Product& product, std::int64_t group, std::int64_t row, std::int64_t column) {
    float total = 0;
    for (std::int64_t first = 0; first < product.depth; first += kFusedTerms) {
      float sum = 0;
      for (std::int64_t k = first; k < product.depth && k < first + kFusedTerms; ++k) {
        sum = std::fma(operand_value(product.left, group, row, k), operand_value(product.right, group, column, k), sum);
      }
      total = first == 0 ? sum : total + sum;
    }
    return total;
  }
};

}  // namespace lockstep::device
