#include "salt.hpp"

#include <algorithm>

namespace {

using namespace lockstep;

class Salt final : public AugmentStep {
 public:
  explicit Salt(double share) : share_(share) {}

  // All chance comes from `random`, so it does not matter which rank and which thread does this.
  void apply(Image& image, RandomStream& random) const override {
    for (std::int64_t y = 0; y < image.height(); ++y) {
      for (std::int64_t x = 0; x < image.width(); ++x) {
        if (random.unit() < share_) std::fill_n(image.row(y) + x * image.channels(), image.channels(), 255);
      }
    }
  }

 private:
  double share_;
};

}  // namespace

AugmentDef make_salt() {
  AugmentDef def;
  def.name = "salt";
  def.doc = "turns some pixels white";
  AttributeSpec share;
  share.name = "share";
  share.kind = AttributeKind::number;
  share.doc = "of all pixels";
  share.default_value = 0.01;
  share.minimum = 0;
  share.maximum = 1;
  def.attributes = {share};
  def.shorthand = "share";  // `salt: 0.05` in the job file's `augment`
  def.make = [](const Attributes& attributes) { return std::make_unique<Salt>(attributes.number("share")); };
  return def;
}
