// Masks: PNG files whose pixels are numbers of classes, read, moved with their image, and refused.
#include <gtest/gtest.h>
#include <zlib.h>

#include <map>
#include <string>
#include <vector>

#include "data/augment.hpp"
#include "data/image_file.hpp"
#include "data/open.hpp"
#include "data/picture.hpp"
#include "data/reader_support.hpp"

namespace lockstep::test {

namespace {

using Classes = std::vector<std::uint8_t>;

SourceOptions masked(const std::string& path) {
  SourceOptions options = source(SourceKind::csv, {path});
  options.mask = "mask";
  options.classes = {"ground", "disc", "square"};
  return options;
}

/// Each pixel is (row * 4 + column) % 3, with one that does not count.
Classes pattern(std::int64_t height, std::int64_t width) {
  Classes pixels;
  for (std::int64_t i = 0; i < height * width; ++i)
    pixels.push_back(static_cast<std::uint8_t>((i / width * 4 + i) % 3));
  pixels[5] = kIgnoredPixel;
  return pixels;
}

/// An image of which each pixel says which class the mask has there.
Sample marked(const Classes& classes, std::int64_t height, std::int64_t width) {
  Sample sample;
  for (const char* name : {"image", "mask"}) sample.push_back({name, Tensor({DType::u8, {height, width, 1}})});
  for (std::size_t i = 0; i < classes.size(); ++i) {
    sample[0].tensor.as<std::uint8_t>()[i] = static_cast<std::uint8_t>(80 + classes[i] * 40);
    sample[1].tensor.as<std::uint8_t>()[i] = classes[i];
  }
  return sample;
}

struct Stepped {
  std::vector<float> image;
  std::vector<std::int32_t> mask;
};

Stepped run(const std::vector<AugmentOptions>& steps, const Sample& sample, std::int64_t id) {
  const Shape& shape = sample[0].tensor.shape();
  const data::Pipeline pipeline({{"image", Feature::Kind::image, {DType::u8, shape}},
                                 {"mask", Feature::Kind::mask, {DType::u8, shape}, {"a", "b", "c"}}},
                                {.steps = steps, .mean = {}, .stddev = {}, .seed = 3}, built_in_augmentations());
  Stepped out;
  out.image.resize(static_cast<std::size_t>(pipeline.outputs()[0].spec.elements()));
  out.mask.resize(static_cast<std::size_t>(pipeline.outputs()[1].spec.elements()));
  data::PipelineScratch scratch;
  const std::vector<std::byte*> to = {reinterpret_cast<std::byte*>(out.image.data()),
                                      reinterpret_cast<std::byte*>(out.mask.data())};
  pipeline.run(sample, id, 1, scratch, to);
  return out;
}

AugmentOptions step(const std::string& name, std::map<std::string, Attribute> attributes = {}) {
  return {name, Attributes(std::move(attributes)), {}};
}

}  // namespace

TEST(Mask, IsReadAsItIs) {
  const TemporaryFolder folder;
  const Classes classes = pattern(4, 6);
  write_folder(folder.path(), {{"a.png", png(6, 4, 3)},
                               {"m.png", data::mask_png(classes, 4, 6)},
                               {"a.csv", "image,mask\na.png,m.png\na.png,m.png\n"},
                               {"labels.csv", "mask,image,label\nm.png,a.png,x\n"}});
  const auto set = data::open(masked(folder / "a.csv"));
  ASSERT_EQ(set->info().features.size(), 2U) << "there are no labels";
  const Feature& mask = set->info().features[1];
  EXPECT_EQ(mask.kind, Feature::Kind::mask);
  EXPECT_EQ(mask.spec, (TensorSpec{DType::u8, {4, 6, 1}}));
  EXPECT_EQ(mask.classes, (std::vector<std::string>{"ground", "disc", "square"}));
  EXPECT_EQ(set->info().features[0].spec.shape, (Shape{4, 6, 3})) << "a palette makes no colors of gray images";
  EXPECT_EQ(set->label(0), -1);
  Sample sample;
  set->read(1, sample);
  EXPECT_EQ(bytes_of(sample[1].tensor), classes);

  const auto labelled = data::open(masked(folder / "labels.csv"));
  ASSERT_EQ(labelled->info().features.size(), 3U);
  EXPECT_EQ(labelled->info().features[0].kind, Feature::Kind::mask);
  EXPECT_EQ(labelled->info().class_names, std::vector<std::string>{"x"});
  const auto like = data::open(source(SourceKind::csv, {folder / "a.csv"}), {.like = &set->info()});
  EXPECT_EQ(like->info().features[1].classes, mask.classes) << "as in the training set";
}

TEST(Mask, OfGrayIsNotScaled) {
  const TemporaryFolder folder;
  const std::string gray = png(4, 4, 1);  // of 8 bits
  Tensor out;
  data::decode_mask(std::as_bytes(std::span(gray)), data::MaskCode(255), out);
  EXPECT_EQ(bytes_of(out), picture(4, 4, 1));
}

TEST(Mask, OfOtherValues) {
  const TemporaryFolder folder;
  const Classes black_and_white = {0, 255, 255, 0, 255, 0}, spread = {10, 20, 0, 20, 10, 20};
  write_folder(folder.path(), {{"a.png", png(3, 2, 3)},
                               {"bw.png", data::mask_png(black_and_white, 2, 3)},
                               {"spread.png", data::mask_png(spread, 2, 3)},
                               {"bw.csv", "image,mask\na.png,bw.png\n"},
                               {"spread.csv", "image,mask\na.png,spread.png\n"}});
  const auto with = [&](const std::string& name, std::size_t classes,
                        const std::map<std::string, Attribute>& settings) {
    SourceOptions options = masked(folder / name);
    options.classes.resize(classes);
    options.attributes = Attributes(settings);
    return options;
  };
  const auto read = [](const SourceOptions& options) {
    Sample sample;
    data::open(options)->read(0, sample);
    return bytes_of(sample[1].tensor);
  };
  const auto refused = [&](const SourceOptions& options) { return without(data_error(options), folder.path()); };
  using Values = std::vector<std::int64_t>;
  EXPECT_EQ(
      refused(with("bw.csv", 2, {})),
      "bw.csv: the masks hold 0 and 255 only, and 255 does not count, so 'ground' is all there is to learn; if 255 "
      "is 'disc', add `values: [0, 255]`");
  EXPECT_EQ(refused(with("bw.csv", 3, {})),
            "bw.csv: the masks hold 0 and 255 only, and 255 does not count, so 'ground' is all there is to learn; name "
            "another value as `ignored`");
  EXPECT_EQ(read(with("bw.csv", 2, {{"values", Values{0, 255}}})), (Classes{0, 1, 1, 0, 1, 0}));
  EXPECT_EQ(read(with("bw.csv", 2, {{"values", Values{255, 0}}})), (Classes{1, 0, 0, 1, 0, 1}));
  EXPECT_EQ(read(with("spread.csv", 2, {{"values", Values{10, 20}}, {"ignored", std::int64_t{0}}})),
            (Classes{0, 1, kIgnoredPixel, 1, 0, 1}));
  EXPECT_NE(data::open(with("bw.csv", 2, {{"values", Values{0, 255}}}))->info().digest,
            data::open(with("bw.csv", 2, {{"values", Values{255, 0}}}))->info().digest);
  const std::string bad = refused(with("spread.csv", 2, {{"values", Values{10, 20}}, {"ignored", std::int64_t{-1}}}));
  EXPECT_EQ(
      bad.substr(0, bad.find(". Repair")),
      "spread.csv: 1 of 1 samples is bad: spread.csv:2: spread.png: expected a class, 10, 20, at row 0, column 2, "
      "found 0");
}

TEST(Mask, AnIgnoredNumberAsInPyTorch) {
  const TemporaryFolder folder;
  write_folder(folder.path(), {{"a.png", png(3, 1, 3)},
                               {"m.png", data::mask_png(Classes{0, 1, 2}, 1, 3)},
                               {"a.csv", "image,mask\na.png,m.png\n"}});
  SourceOptions options = masked(folder / "a.csv");
  options.attributes = Attributes({{"ignored", std::int64_t{0}}});
  const auto set = data::open(options);
  Sample sample;
  set->read(0, sample);
  EXPECT_EQ(bytes_of(sample[1].tensor), (Classes{kIgnoredPixel, 1, 2}));
  EXPECT_EQ(set->info().warnings, std::vector<std::string>{"masks: no pixel is of 1 of 3 classes: ground"});
}

TEST(Mask, ErrorsNameFileAndValue) {
  const TemporaryFolder folder;
  Classes wrong = pattern(4, 6);
  wrong[9] = 3;
  write_folder(folder.path(), {{"a.png", png(6, 4, 3)},
                               {"m.png", data::mask_png(pattern(4, 6), 4, 6)},
                               {"wrong.png", data::mask_png(wrong, 4, 6)},
                               {"small.png", data::mask_png(pattern(3, 6), 3, 6)},
                               {"photo.jpg", jpeg(6, 4, 1)},
                               {"wrong.csv", "image,mask\na.png,wrong.png\n"},
                               {"small.csv", "image,mask\na.png,small.png\n"},
                               {"color.csv", "image,mask\na.png,a.png\n"},
                               {"photo.csv", "image,mask\na.png,photo.jpg\n"},
                               {"none.csv", "image,other\na.png,m.png\n"}});
  const auto refused = [&](const std::string& name) {
    const std::string said = without(data_error(masked(folder / name)), folder.path());
    return said.substr(0, said.find(". Repair"));
  };
  EXPECT_EQ(
      refused("wrong.csv"),
      "wrong.csv: 1 of 1 samples is bad: wrong.csv:2: wrong.png: expected a class, 0 to 2, or 255, which does not "
      "count, at row 1, column 3, found 3");
  EXPECT_EQ(refused("small.csv"),
            "small.csv: 1 of 1 samples is bad: small.csv:2: expected a mask of the image's size, 6 x 4, found 6 x 3");
  EXPECT_EQ(
      refused("color.csv"),
      "color.csv: 1 of 1 samples is bad: color.csv:2: a.png: expected a mask with a palette or of gray, of up to 8 "
      "bits, found colors of 8 bits");
  EXPECT_EQ(
      refused("photo.csv"),
      "photo.csv: 1 of 1 samples is bad: photo.csv:2: photo.jpg: expected a mask as PNG, which keeps each pixel's "
      "number, found another file");
  EXPECT_EQ(refused("none.csv"),
            "none.csv:1: expected a column of images and the column 'mask' of masks, found image, other");
}

TEST(Mask, PalettesOfTheirOwnAreNamed) {
  const TemporaryFolder folder;
  const auto recolored = [](std::string file) {  // the first two colors of the palette change places
    const auto palette = file.find("PLTE") + 4;
    std::swap_ranges(file.begin() + static_cast<std::ptrdiff_t>(palette),
                     file.begin() + static_cast<std::ptrdiff_t>(palette + 3),
                     file.begin() + static_cast<std::ptrdiff_t>(palette + 3));
    const std::size_t length = static_cast<unsigned char>(file[palette - 5]) +
                               (static_cast<std::size_t>(static_cast<unsigned char>(file[palette - 6])) << 8);
    const auto sum = crc32_z(0, reinterpret_cast<const Bytef*>(file.data() + palette - 4), length + 4);
    for (std::size_t i = 0; i < 4; ++i) file[palette + length + i] = static_cast<char>(sum >> (24 - 8 * i));
    return file;
  };
  const std::string mask = data::mask_png(pattern(4, 6), 4, 6);
  write_folder(folder.path(), {{"a.png", png(6, 4, 3)},
                               {"m.png", mask},
                               {"other.png", recolored(mask)},
                               {"alike.csv", "image,mask\na.png,m.png\na.png,m.png\n"},
                               {"other.csv", "image,mask\na.png,m.png\na.png,other.png\n"}});
  EXPECT_EQ(data::open(masked(folder / "alike.csv"))->info().warnings, std::vector<std::string>());
  const auto warnings = data::open(masked(folder / "other.csv"))->info().warnings;
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(
      warnings[0],
      "masks: 0 stands for #000000 in the palette of m.png and for #800000 in that of other.png: the number is the "
      "class, whatever its color; write all masks with one palette");
}

TEST(Mask, MovesWithItsImage) {
  const Classes classes = [] {
    Classes all = pattern(8, 8);
    for (auto& value : all) value = value == kIgnoredPixel ? 1 : value;
    return all;
  }();
  const Sample sample = marked(classes, 8, 8);
  const std::vector<std::vector<AugmentOptions>> moves = {
      {step("flip")}, {step("crop", {{"padding", std::int64_t{3}}})}, {step("flip"), step("crop")}};
  int moved = 0;
  for (const auto& steps : moves) {
    for (std::int64_t id = 0; id < 20; ++id) {
      const Stepped out = run(steps, sample, id);
      for (std::size_t i = 0; i < out.mask.size(); ++i) {
        const int value = static_cast<int>(out.image[i] * 255 + 0.5F);
        EXPECT_EQ(out.mask[i], value == 0 ? kIgnoredPixel : (value - 80) / 40) << steps[0].name << " " << id;
        moved += out.mask[i] == classes[i] ? 0 : 1;
      }
    }
  }
  EXPECT_GT(moved, 100);
}

TEST(Mask, HasNoOtherClassesAfterAnyStep) {
  const Sample sample = marked(pattern(9, 9), 9, 9);
  for (const AugmentOptions& one :
       {step("rotate", {{"degrees", 40.0}}), step("resize", {{"size", std::vector<std::int64_t>{14}}}),
        step("resized_crop", {{"size", std::vector<std::int64_t>{7}}}), step("rand_augment"),
        step("cutout", {{"size", std::int64_t{4}}}), step("blur", {{"probability", 1.0}}),
        step("color_jitter", {{"brightness", 0.9}}), step("gray"), step("erase", {{"probability", 1.0}}),
        step("center_crop", {{"size", std::vector<std::int64_t>{11}}})}) {
    std::map<std::int32_t, int> seen;
    for (std::int64_t id = 0; id < 50; ++id) {
      for (const std::int32_t value : run({one}, sample, id).mask) ++seen[value];
    }
    for (const auto& [value, times] : seen) EXPECT_TRUE(value <= 2 || value == kIgnoredPixel) << one.name << value;
    EXPECT_GE(seen.size(), 4U) << one.name;
  }
  const Classes same = pattern(9, 9);
  for (const AugmentOptions& colors : {step("color_jitter", {{"contrast", 0.9}}), step("blur", {{"probability", 1.0}}),
                                       step("cutout", {{"size", std::int64_t{4}}})}) {
    EXPECT_EQ(run({colors}, sample, 3).mask, std::vector<std::int32_t>(same.begin(), same.end())) << colors.name;
  }
}

TEST(Mask, AStepOfYourOwnMustKnowOfThem) {
  class Fade final : public AugmentStep {
    void apply(Image& /*image*/, RandomStream& /*random*/) const override {}
  };
  AugmentRegistry registry = built_in_augmentations();
  AugmentDef fade;
  fade.name = "fade";
  fade.make = [](const Attributes&) { return std::make_unique<Fade>(); };
  registry.add(fade);
  const auto made = [&] {
    const data::Pipeline pipeline({{"image", Feature::Kind::image, {DType::u8, {4, 4, 1}}},
                                   {"mask", Feature::Kind::mask, {DType::u8, {4, 4, 1}}, {"a", "b"}}},
                                  {.steps = {step("fade")}, .mean = {}, .stddev = {}, .seed = 3}, registry);
  };
  EXPECT_EQ(
      message_of(ExitCode::configuration, made),
      "expected steps that know of masks, since 'mask' is one, found 'fade'; set AugmentDef::masks when its apply() "
      "does");
}

}  // namespace lockstep::test
