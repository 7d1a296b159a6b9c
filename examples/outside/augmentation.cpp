// A custom augmentation step: salt, which turns some pixels white.
#include <lockstep/augment.hpp>

#include <algorithm>

#include "example.hpp"

namespace {

using namespace lockstep;

class Salt final : public AugmentStep {
 public:
  explicit Salt(double share) : share_(share) {}

  // All randomness comes from `random`, so the result does not depend on the rank or thread.
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

AugmentDef salt() {
  return {.name = "salt",
          .doc = "turns some pixels white",
          .attributes = {{.name = "share",
                          .kind = AttributeKind::number,
                          .doc = "of all pixels",
                          .default_value = 0.01,
                          .minimum = 0,
                          .maximum = 1}},
          .shorthand = "share",  // `salt: 0.05`
          .make = [](const Attributes& attributes) { return std::make_unique<Salt>(attributes.number("share")); }};
}

}  // namespace

int main() {
  return run_example([] {
    Registries registries = Registries::built_in();
    registries.augmentations.add(salt());
    const JobFile job = digits(registries, {"data.augment=[{salt: 0.05}]"});
    return same_bits([&](Communicator& communicator) { return train_job(job, communicator, registries); });
  });
}
