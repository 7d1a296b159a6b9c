// Small data sets for tests of the loader and of pipelines.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "lockstep/data_set.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {

/// Sample id is an image [1, 2, 1] of (id, id / 256) and the label id.
class CountingSet : public DataSet {
 public:
  explicit CountingSet(std::int64_t size) : size_(size) {
    info_.features = {{"image", Feature::Kind::image, {DType::u8, {1, 2, 1}}},
                      {"label", Feature::Kind::label, {DType::i32, {}}}};
    info_.class_names = {"any"};
  }
  [[nodiscard]] const DataSetInfo& info() const override { return info_; }
  [[nodiscard]] std::int64_t size() const override { return size_; }
  void read(std::int64_t id, Sample& out) const override {
    ++reads;
    if (id == bad) throw Error(ExitCode::data, "sample " + std::to_string(id) + " is bad");
    if (delay.count() > 0) std::this_thread::sleep_for(delay);
    out.resize(2);
    for (std::size_t i = 0; i < 2; ++i) out[i] = {info_.features[i].name, Tensor(info_.features[i].spec)};
    out[0].tensor.as<std::uint8_t>()[0] = static_cast<std::uint8_t>(id & 255);
    out[0].tensor.as<std::uint8_t>()[1] = static_cast<std::uint8_t>(id >> 8);
    out[1].tensor.as<std::int32_t>()[0] = static_cast<std::int32_t>(id);
  }

  std::int64_t bad = -1;
  std::chrono::microseconds delay{0};
  mutable std::atomic<int> reads{0};

 protected:
  DataSetInfo info_;

 private:
  std::int64_t size_;
};

/// Samples of one token: the low bits of the variant with which they were read.
class VariantSet final : public CountingSet {
 public:
  explicit VariantSet(std::int64_t size) : CountingSet(size) {
    info_.features = {{"tokens", Feature::Kind::tokens, {DType::i32, {1}}}};
  }
  void read(std::int64_t id, Sample& out) const override { read_variant(id, 0, out); }
  void read_variant(std::int64_t /*id*/, std::uint64_t variant, Sample& out) const override {
    out.resize(1);
    out[0] = {"tokens", Tensor(info_.features[0].spec)};
    out[0].tensor.as<std::int32_t>()[0] = static_cast<std::int32_t>(variant & 0x7fffffff);
  }
};

}  // namespace lockstep::data
