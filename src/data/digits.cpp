#include "data/digits.hpp"

#include <fmt/format.h>

#include "core/digest.hpp"
#include "lockstep/error.hpp"
#include "lockstep/random.hpp"

namespace lockstep::data {

namespace {

constexpr std::uint64_t kSingleKey = hash_name("lockstep digits"), kPairKey = hash_name("lockstep digit pairs"),
                        kGroupKey = hash_name("lockstep digit groups");
constexpr std::uint32_t kClassLane = 2;  // lanes 0 and 1 of a digit's stream are used for drawing it

int digit_of(std::uint64_t key, std::uint64_t index) {
  return RandomStream(key, index, kClassLane).below(10);
}

std::vector<std::string> digit_names() {
  return {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
}

Feature image_feature(const char* name) {
  return {name, Feature::Kind::image, {DType::u8, {kDigitSide, kDigitSide, 1}}};
}

/// Gives `tensor` the feature's spec, unless it has it already.
Tensor& shaped(NamedTensor& tensor, const Feature& feature) {
  if (tensor.name != feature.name) tensor.name = feature.name;
  if (tensor.tensor.bytes() == nullptr || tensor.tensor.spec() != feature.spec) tensor.tensor = Tensor(feature.spec);
  return tensor.tensor;
}

class Digits : public DataSet {
 public:
  Digits(std::int64_t count, std::int64_t first) : count_(count), first_(first) {}
  const DataSetInfo& info() const override { return info_; }
  std::int64_t size() const override { return count_; }

 protected:
  void describe(std::vector<Feature> images, std::vector<std::string> classes, const char* kind) {
    info_.format = fmt::format("{} (synthetic)", kind);
    info_.source = fmt::format("{} from number {}", count_, first_);
    info_.features = std::move(images);
    info_.features.push_back({"label", Feature::Kind::label, {DType::i32, {}}});
    info_.mean = {0.104};  // measured on the first 60,000: computing them from all samples would delay step 0
    info_.stddev = {0.218};
    info_.class_names = std::move(classes);
    info_.class_counts.assign(info_.class_names.size(), 0);
    for (std::int64_t id = 0; id < count_; ++id) ++info_.class_counts[label(id)];
    info_.digest = sha256(fmt::format("{} version {} first {} count {}", kind, kDigitsVersion, first_, count_));
  }

  std::uint64_t index_of(std::int64_t id) const {
    LOCKSTEP_CHECK(id >= 0 && id < count_, fmt::format("sample {} of {}", id, count_));
    return first_ + id;
  }

  void start(Sample& out) const {
    out.resize(info_.features.size());
    for (std::size_t i = 0; i < out.size(); ++i) shaped(out[i], info_.features[i]);
  }

 private:
  std::int64_t count_;
  std::uint64_t first_;
  DataSetInfo info_;
};

class SingleDigits final : public Digits {
 public:
  SingleDigits(std::int64_t count, std::int64_t first, bool masks) : Digits(count, first), masks_(masks) {
    std::vector<Feature> images = {image_feature("image")};
    if (masks) images.push_back(image_feature("mask"));
    describe(std::move(images), digit_names(), masks ? "digits with masks" : "digits");
  }

  std::int64_t label(std::int64_t id) const override { return digit_of(kSingleKey, index_of(id)); }

  void read(std::int64_t id, Sample& out) const override {
    start(out);
    const int digit = digit_of(kSingleKey, index_of(id));
    draw_digit(digit, kSingleKey, index_of(id), out[0].tensor.as<std::uint8_t>(),
               masks_ ? out[1].tensor.as<std::uint8_t>() : std::span<std::uint8_t>());
    out.back().tensor.as<std::int32_t>()[0] = digit;
  }

 private:
  bool masks_;
};

class DigitPairs final : public Digits {
 public:
  DigitPairs(std::int64_t count, std::int64_t first) : Digits(count, first) {
    describe({image_feature("left"), image_feature("right")}, {"different", "equal"}, "pairs of digits");
  }

  std::int64_t label(std::int64_t id) const override { return draw(id).equal ? 1 : 0; }

  void read(std::int64_t id, Sample& out) const override {
    start(out);
    const Draw pair = draw(id);
    draw_digit(pair.left, kPairKey, 2 * index_of(id), out[0].tensor.as<std::uint8_t>());
    draw_digit(pair.right, kPairKey, 2 * index_of(id) + 1, out[1].tensor.as<std::uint8_t>());
    out[2].tensor.as<std::int32_t>()[0] = pair.equal ? 1 : 0;
  }

 private:
  struct Draw {
    int left, right;
    bool equal;
  };

  Draw draw(std::int64_t id) const {
    RandomStream random(kPairKey, index_of(id), kClassLane);
    const int left = random.below(10), other = random.below(9);
    const bool equal = random.below(2) == 1;
    return {left, equal ? left : (left + 1 + other) % 10, equal};
  }
};

/// Several drawings of one digit and, of triplets, one of another.
class DigitGroups final : public Digits {
 public:
  DigitGroups(std::int64_t count, std::int64_t first, bool triplets) : Digits(count, first), triplets_(triplets) {
    if (triplets) {
      describe({image_feature("anchor"), image_feature("positive"), image_feature("negative")}, digit_names(),
               "triplets of digits");
    } else {
      describe({image_feature("left"), image_feature("right")}, digit_names(), "pairs of equal digits");
    }
  }

  std::int64_t label(std::int64_t id) const override {
    return RandomStream(kGroupKey, index_of(id), kClassLane).below(10);
  }

  void read(std::int64_t id, Sample& out) const override {
    start(out);
    RandomStream random(kGroupKey, index_of(id), kClassLane);
    const int digit = random.below(10), other = (digit + 1 + static_cast<int>(random.below(9))) % 10;
    const std::uint64_t images = triplets_ ? 3 : 2;
    for (std::uint64_t i = 0; i < images; ++i) {
      draw_digit(i == 2 ? other : digit, kGroupKey, images * index_of(id) + i, out[i].tensor.as<std::uint8_t>());
    }
    out.back().tensor.as<std::int32_t>()[0] = digit;
  }

 private:
  bool triplets_;
};

}  // namespace

std::unique_ptr<DataSet> make_digits(std::int64_t count, std::int64_t first, const DigitForm& form) {
  if (count < 1 || first < 0) {
    throw Error(
        ExitCode::configuration,
        fmt::format("digits: expected a count of at least 1 and a first of at least 0, found {} and {}", count, first));
  }
  if (form.pairs && form.masks) {
    throw Error(ExitCode::configuration,
                "digits: expected pairs or masks, found both; a mask belongs to a sample of one image");
  }
  if (form.triplets && (form.pairs || form.masks)) {
    throw Error(ExitCode::configuration, "digits: expected triplets, or pairs or masks, found both; leave one out");
  }
  if (form.same && !form.pairs) {
    throw Error(ExitCode::configuration, "digits: expected same beside pairs: true, found it without; add pairs: true");
  }
  if (form.triplets || form.same) return std::make_unique<DigitGroups>(count, first, form.triplets);
  if (form.pairs) return std::make_unique<DigitPairs>(count, first);
  return std::make_unique<SingleDigits>(count, first, form.masks);
}

}  // namespace lockstep::data
