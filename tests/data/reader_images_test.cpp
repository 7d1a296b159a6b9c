#include <gtest/gtest.h>

#include <cstdio>

#include <jpeglib.h>

#include <jerror.h>

#include <csetjmp>
#include <cstdlib>
#include <span>

#include "data/image_file.hpp"
#include "data/reader_support.hpp"
#include "data/sample_identities.hpp"
#include "data/split.hpp"

namespace lockstep::test {
namespace {

Members animals() {
  return {{"train/", ""},
          {"train/cat/", ""},
          {"train/dog/", ""},
          {"train/cat/1.jpg", jpeg(8, 6, 3, 1)},
          {"train/cat/2.png", png(8, 6, 3, 2)},
          {"train/dog/1.jpg", jpeg(8, 6, 3, 3)},
          {"train/dog/.DS_Store", "hidden files are not seen"}};
}

/// All samples of a set, as bytes, labels and names.
struct Everything {
  std::vector<std::vector<std::uint8_t>> images;
  std::vector<std::int32_t> labels;
  std::vector<std::string> names;
  bool operator==(const Everything&) const = default;
};

Everything read_all(const DataSet& set) {
  Everything all;
  Sample sample;
  for (std::int64_t id = 0; id < set.size(); ++id) {
    set.read(id, sample);
    all.images.push_back(bytes_of(sample.at(0).tensor));
    all.labels.push_back(integers_of(sample.at(1).tensor).at(0));
    EXPECT_EQ(all.labels.back(), set.label(id));
    all.names.push_back(set.name(id));
  }
  return all;
}

TEST(ReaderImages, FolderHasClassesCountsAndShapes) {
  const TemporaryFolder folder;
  write_folder(folder.path(), animals());
  const auto set = data::open(source(SourceKind::images, {folder.path()}));
  EXPECT_EQ(set->size(), 3);
  EXPECT_EQ(set->info().class_names, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(set->info().class_counts, (std::vector<std::int64_t>{2, 1}));
  ASSERT_EQ(set->info().features.size(), 2U);
  EXPECT_EQ(set->info().features[0].name, "image");
  EXPECT_EQ(set->info().features[0].spec, (TensorSpec{DType::u8, {6, 8, 3}}));
  EXPECT_EQ(set->info().features[1].spec, (TensorSpec{DType::i32, {}}));
  const Everything all = read_all(*set);
  EXPECT_EQ(all.names, (std::vector<std::string>{"train/cat/1.jpg", "train/cat/2.png", "train/dog/1.jpg"}));
  EXPECT_EQ(all.labels, (std::vector<std::int32_t>{0, 0, 1}));
  EXPECT_EQ(all.images[1], picture(8, 6, 3, 2));  // PNG is exact
  const auto expected = picture(8, 6, 3, 1);      // JPEG nearly so
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(all.images[0][i], expected[i], 12) << i;
}

TEST(ReaderImages, ArchivesAreTheSameSetAsTheFolder) {
  const TemporaryFolder folder;
  Members members = animals();
  members.emplace_back("train/\u043a\u0430\u0442\u044f/\u00e9t\u00e9 1.png", png(8, 6, 3, 4));
  write_folder(folder / "data", members);
  const auto reference = data::open(source(SourceKind::images, {folder / "data"}));
  const std::vector<std::pair<std::string, Packing>> archives{{"a.tar", Packing::plain},
                                                              {"a.tar.gz", Packing::gzip},
                                                              {"a.tar.zst", Packing::zstd},
                                                              {"a.zip", Packing::zip},
                                                              {"a.7z", Packing::seven_zip}};
  for (const auto& [name, packing] : archives) {
    write_tar(folder / name, members, packing);
    const auto set = data::open(source(SourceKind::images, {folder / name}));
    EXPECT_EQ(set->info().digest, reference->info().digest) << name;
    EXPECT_EQ(read_all(*set), read_all(*reference)) << name;
  }
}

TEST(ReaderImages, LongNamesInAPlainTar) {
  const TemporaryFolder folder;
  const std::string deep = std::string(120, 'a') + "/" + std::string(130, 'b') + "/cat/" + std::string(90, 'c');
  write_tar(folder / "a.tar", {{deep + ".png", png(2, 2, 1)}}, Packing::plain);
  const auto set = data::open(source(SourceKind::images, {folder / "a.tar"}));
  EXPECT_EQ(set->name(0), deep + ".png");
  EXPECT_EQ(set->info().class_names, (std::vector<std::string>{"cat"}));
}

TEST(ReaderImages, SeveralPathsAreOneSet) {
  const TemporaryFolder folder;
  write_tar(folder / "b.tar", {{"dog/1.png", png(4, 4, 3, 1)}}, Packing::plain);
  write_tar(folder / "a.tar.gz", {{"cat/1.png", png(4, 4, 3, 2)}}, Packing::gzip);
  const auto set = data::open(source(SourceKind::images, {folder / "b.tar", folder / "a.tar.gz"}));
  EXPECT_EQ(set->info().class_names, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(read_all(*set).labels, (std::vector<std::int32_t>{1, 0}));
}

TEST(ReaderImages, GreyStaysGreyUnlessMixed) {
  const TemporaryFolder folder;
  write_folder(folder / "grey", {{"a/1.jpg", jpeg(4, 4, 1)}, {"a/2.png", png(4, 4, 1, 5)}});
  const auto grey = data::open(source(SourceKind::images, {folder / "grey"}));
  EXPECT_EQ(grey->info().features[0].spec.shape, (Shape{4, 4, 1}));
  EXPECT_EQ(read_all(*grey).images[1], picture(4, 4, 1, 5));

  write_folder(folder / "mixed", {{"a/1.png", png(4, 4, 1, 5)}, {"a/2.png", png(9, 4, 3)}});
  const auto mixed = data::open(source(SourceKind::images, {folder / "mixed"}));
  EXPECT_EQ(mixed->info().features[0].spec.shape, (Shape{-1, -1, 3}));
  const auto pixels = read_all(*mixed).images[0], plain = picture(4, 4, 1, 5);
  ASSERT_EQ(pixels.size(), 48U);
  for (std::size_t i = 0; i < pixels.size(); ++i) EXPECT_EQ(pixels[i], plain[i / 3]);
}

TEST(ReaderImages, CmykBecomesRgb) {
  const TemporaryFolder folder;
  write_folder(folder.path(), {{"a/1.jpg", jpeg(4, 4, 4)}});
  const auto set = data::open(source(SourceKind::images, {folder.path()}));
  EXPECT_EQ(set->info().features[0].spec.shape, (Shape{4, 4, 3}));
  const auto inks = picture(4, 4, 4);
  const auto rgb = read_all(*set).images[0];
  for (std::size_t i = 0; i < 48; ++i) {  // libjpeg marks what it writes as Adobe's: inverted inks
    EXPECT_NEAR(rgb[i], inks[i / 3 * 4 + i % 3] * inks[i / 3 * 4 + 3] / 255, 6) << i;
  }
}

TEST(ReaderImages, ClassesOfTheTrainingSetHoldForValidation) {
  const TemporaryFolder folder;
  write_folder(folder / "train", {{"cat/1.png", png(4, 4, 3)}, {"dog/1.png", png(4, 4, 3)}});
  write_folder(folder / "test", {{"dog/1.png", png(4, 4, 1)}});
  write_folder(folder / "odd", {{"eel/1.png", png(4, 4, 3)}});
  const auto train = data::open(source(SourceKind::images, {folder / "train"}));
  const auto test = data::open(source(SourceKind::images, {folder / "test"}), {0, &train->info()});
  EXPECT_EQ(test->label(0), 1);
  EXPECT_EQ(test->info().features[0].spec.shape, (Shape{4, 4, 3}));
  const auto message = message_of(ExitCode::data, [&] {
    (void)data::open(source(SourceKind::images, {folder / "odd"}), {0, &train->info()});
  });
  EXPECT_EQ(message, "eel/1.png: class 'eel' is not among the 2 classes of the training set");
}

TEST(ReaderImages, CountTakesEvenlySpreadSamples) {
  const TemporaryFolder folder;
  write_folder(
      folder.path(),
      {{"a/1.png", png(2, 2, 1)}, {"a/2.png", png(2, 2, 1)}, {"b/1.png", png(2, 2, 1)}, {"b/2.png", png(2, 2, 1)}});
  auto options = source(SourceKind::images, {folder.path()});
  options.count = 2;
  EXPECT_EQ(data::open(options)->info().class_counts, (std::vector<std::int64_t>{1, 1}));
}

TEST(ReaderImages, PlainTarReadsOnlyWhatItIsAskedFor) {
  const TemporaryFolder folder;
  const std::string image = png(64, 64, 3);
  Members members;
  for (int i = 0; i < 20; ++i) members.emplace_back("a/" + std::to_string(i) + ".png", image);
  write_tar(folder / "a.tar", members, Packing::plain);
  const auto set = data::open(source(SourceKind::images, {folder / "a.tar"}));
  const auto before = set->bytes_read();
  Sample sample;
  set->read(7, sample);
  EXPECT_EQ(set->bytes_read() - before, image.size());
}

SourceOptions nested(const std::string& path, const std::string& class_folder) {
  SourceOptions options = source(SourceKind::images, {path});
  if (!class_folder.empty()) options.attributes.set("class_folder", class_folder);
  return options;
}

TEST(ReaderImages, OfNestedFoldersOneIsTheClass) {
  const TemporaryFolder folder;
  using Names = std::vector<std::string>;
  write_folder(folder / "data", {{"in/cat/cam1/1.png", png(4, 4, 3)}, {"in/dog/cam2/1.png", png(4, 4, 3)}});
  const auto innermost = data::open(nested(folder / "data", ""));
  EXPECT_EQ(innermost->info().class_names, (Names{"cam1", "cam2"}));
  ASSERT_EQ(innermost->info().warnings.size(), 1U);
  EXPECT_EQ(without(innermost->info().warnings[0], folder.path()),
            "data: nested folders: the class is the innermost, such as 'cam1' of 'cat/cam1'; set `class_folder: "
            "outermost` for 'cat', as torchvision's ImageFolder takes it");
  const auto outermost = data::open(nested(folder / "data", "outermost"));
  EXPECT_EQ(outermost->info().class_names, (Names{"cat", "dog"}));
  EXPECT_EQ(outermost->info().warnings, Names{});

  write_folder(folder / "both", {{"cat/cam1/1.png", png(4, 4, 3)}, {"dog/cam1/1.png", png(4, 4, 3)}});
  EXPECT_EQ(data::open(nested(folder / "both", "outermost"))->info().class_names, (Names{"cat", "dog"}));
  EXPECT_EQ(data::open(nested(folder / "both", "innermost"))->info().class_names, Names{"cam1"});
  EXPECT_EQ(
      without(data_error(nested(folder / "both", "")), folder.path()),
      "both: nested folders: 'cam1' lies in both 'cat' and 'dog', so it is not clear which folder is the class; set "
      "`class_folder: innermost` for 'cam1', or `outermost` for 'cat' and 'dog'");
}

/// A JPEG with an Exif segment that has the orientation.
std::string turned(std::string jpeg, char orientation) {
  const std::string tiff =
      std::string("MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0", 19) + orientation + std::string(6, '\0');
  const std::string exif = std::string("Exif\0\0", 6) + tiff;
  return jpeg.insert(2, std::string("\xff\xe1\0", 3) + static_cast<char>(exif.size() + 2) + exif);
}

TEST(ReaderImages, WhatIsRarelyMeantIsCounted) {
  const TemporaryFolder folder;
  write_folder(folder / "data", {{"a/1.jpg", turned(jpeg(8, 6, 3), 6)},
                                 {"a/2.jpg", turned(jpeg(8, 6, 3), 1)},
                                 {"b/3.png", deep_png(8, 6, 4095)},
                                 {"b/4.png", png(8, 6, 3)}});
  const auto set = data::open(source(SourceKind::images, {folder / "data"}));
  EXPECT_EQ(set->info().features[0].spec.shape, (Shape{6, 8, 3}));  // not turned
  EXPECT_EQ(set->info().warnings,
            (std::vector<std::string>{
                "1 of 4 images has an Exif orientation, which is not applied: they are read as they are stored, as "
                "torchvision reads them",
                "1 of 4 images have 16 bits and are nearly black: scaled to 8 bits, no value is above 16 of 255, as if "
                "they held 14 bits or fewer; multiply their values first"}));
  write_folder(folder / "full", {{"a/1.png", deep_png(8, 6, 65535)}});
  EXPECT_EQ(data::open(source(SourceKind::images, {folder / "full"}))->info().warnings, std::vector<std::string>{});
}

/// Of libjpeg itself.
struct Judgement {
  bool fails = false;
  std::int64_t warnings = 0;  ///< but for those of unknown versions and color transforms
};

Judgement judged_by_libjpeg(const std::string& bytes) {
  struct Decoder {
    jpeg_decompress_struct info{};
    jpeg_error_mgr errors{};
    std::jmp_buf escape{};
    Judgement judgement;
  } decoder;
  decoder.info.err = jpeg_std_error(&decoder.errors);
  decoder.info.client_data = &decoder;
  decoder.errors.error_exit = [](j_common_ptr info) {
    std::longjmp(static_cast<Decoder*>(info->client_data)->escape, 1);
  };
  decoder.errors.emit_message = [](j_common_ptr info, int level) {
    const int code = info->err->msg_code;
    const bool counts = level < 0 && code != JWRN_JFIF_MAJOR && code != JWRN_ADOBE_XFORM;
    static_cast<Decoder*>(info->client_data)->judgement.warnings += counts ? 1 : 0;
  };
  if (setjmp(decoder.escape) != 0) {
    decoder.judgement.fails = true;
  } else {
    jpeg_create_decompress(&decoder.info);
    jpeg_mem_src(&decoder.info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&decoder.info, TRUE);
    jpeg_start_decompress(&decoder.info);
    std::vector<unsigned char> line(std::size_t{decoder.info.output_width} * 4);
    while (decoder.info.output_scanline < decoder.info.output_height) {
      JSAMPROW row = line.data();
      jpeg_read_scanlines(&decoder.info, &row, 1);
    }
    jpeg_finish_decompress(&decoder.info);
  }
  jpeg_destroy_decompress(&decoder.info);
  return decoder.judgement;
}

TEST(ReaderImages, WhatLibjpegCallsCorruptIsBad) {
  const std::string whole = jpeg(64, 48, 3);
  const auto begin = whole.find("\xff\xda");
  std::int64_t corrupt = 0;
  for (std::size_t i = 0; i < 400; ++i) {
    std::string flipped = whole;
    const std::size_t at = begin + 14 + i * (whole.size() - begin - 16) / 400;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << i % 8));
    const Judgement judgement = judged_by_libjpeg(flipped);
    const bool bad = judgement.fails || judgement.warnings > 0;
    corrupt += bad ? 1 : 0;
    Tensor image;
    const std::string message =
        message_of(ExitCode::data, [&] { data::decode_image(std::as_bytes(std::span(flipped)), 3, image); });
    EXPECT_EQ(message != "no error", bad) << "bit " << i % 8 << " of byte " << at << ": " << message;
    const bool named = message == "truncated JPEG" || message.starts_with("damaged JPEG (");
    EXPECT_TRUE(named || !bad) << message;
  }
  EXPECT_GT(corrupt, 50);
  EXPECT_LT(corrupt, 400);
}

TEST(ReaderImages, BytesBehindTheEndDoNotMatter) {
  const std::string whole = jpeg(64, 48, 3) + std::string(1 << 14, 'x');
  Tensor image;
  data::decode_image(std::as_bytes(std::span(whole)), 3, image);
  EXPECT_EQ(image.shape(), (Shape{48, 64, 3}));
}

TEST(ReaderImages, WhatIsInTheTrainingSetTooIsCounted) {
  const TemporaryFolder folder;
  Members train, other{{"a/new.png", png(4, 4, 3, 90)}};
  for (int i = 0; i < 6; ++i) train.emplace_back("a/" + std::to_string(i) + ".png", png(4, 4, 3, i));
  for (int i = 0; i < 4; ++i) other.emplace_back("a/copy" + std::to_string(i) + ".png", png(4, 4, 3, i));
  write_folder(folder / "train", train);
  write_folder(folder / "train/inside", {{"a/6.png", png(4, 4, 3, 6)}});
  write_folder(folder / "other", other);
  write_folder(folder / "new", {{"a/1.png", png(4, 4, 3, 91)}});
  const auto open = [&](const std::string& name) -> std::shared_ptr<const DataSet> {
    auto options = source(SourceKind::images, {folder / name});
    options.attributes.set("class_folder", std::string("innermost"));
    return data::open(options);
  };
  const auto whole = open("train");
  EXPECT_EQ(data::shared_samples(*open("other"), *whole),
            "4 of 5 samples are in the training set, too: a/copy0.png, a/copy1.png, a/copy2.png and 1 more");
  EXPECT_EQ(data::shared_samples(*open("train/inside"), *whole), "1 of 1 samples is in the training set, too: a/6.png");
  EXPECT_EQ(data::shared_samples(*open("new"), *whole), "");
  const auto parts = data::split(whole, {.fraction = 0.5, .seed = 1});
  EXPECT_EQ(data::shared_samples(*parts.validation, *parts.train), "");
  EXPECT_NE(data::shared_samples(*parts.validation, *whole), "");
}

// Bad input: the exact messages.

TEST(ReaderImagesErrors, BadSamplesAreNamedAndCounted) {
  const TemporaryFolder folder;
  const std::string whole = jpeg(32, 32, 3);
  Members members{{"a/cut.jpg", whole.substr(0, whole.size() / 2)},
                  {"a/text.jpg", "hello"},
                  {"a/good.jpg", whole},
                  {"b/empty.png", ""},
                  {"b/header.jpg", whole.substr(0, 30)},
                  {"b/good.png", png(32, 32, 3)}};
  write_folder(folder / "data", members);
  EXPECT_EQ(without(data_error(source(SourceKind::images, {folder / "data"})), folder.path()),
            "data: 4 of 6 samples are bad: a/cut.jpg: truncated JPEG; a/text.jpg: not a JPEG or PNG file (begins with "
            "68 65 6c 6c); b/empty.png: the file is empty; and 1 more. Repair or remove them, or say "
            "`bad_samples: skip`");
  auto options = source(SourceKind::images, {folder / "data"});
  options.bad_samples = BadWhenIndexed::skip;
  const auto set = data::open(options);
  EXPECT_EQ(set->size(), 2);
  EXPECT_EQ(set->info().class_counts, (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(set->info().skipped,
            (std::vector<std::string>{"a/cut.jpg: truncated JPEG",
                                      "a/text.jpg: not a JPEG or PNG file (begins with 68 65 6c 6c)",
                                      "b/empty.png: the file is empty", "b/header.jpg: truncated JPEG"}));
}

TEST(ReaderImagesErrors, TruncatedAndDamagedPng) {
  const TemporaryFolder folder;
  std::string damaged = png(32, 32, 3);
  write_folder(folder / "cut", {{"a/1.png", damaged.substr(0, damaged.size() - 20)}});
  EXPECT_EQ(without(data_error(source(SourceKind::images, {folder / "cut"})), folder.path()),
            "cut: 1 of 1 samples is bad: a/1.png: truncated PNG. Repair or remove them, or say "
            "`bad_samples: skip`");
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
  write_folder(folder / "bad", {{"a/1.png", damaged}});
  EXPECT_NE(data_error(source(SourceKind::images, {folder / "bad"})).find("a/1.png: damaged PNG ("), std::string::npos);
}

TEST(ReaderImagesErrors, EmptyClassFolder) {
  const TemporaryFolder folder;
  write_folder(folder / "data", {{"cat/1.png", png(4, 4, 3)}, {"dog/", ""}});
  EXPECT_EQ(without(data_error(source(SourceKind::images, {folder / "data"})), folder.path()),
            "data: 1 of 2 samples is bad: dog: the class folder is empty. Repair or remove them, or say "
            "`bad_samples: skip`");
}

TEST(ReaderImagesErrors, ImagesWithoutAClass) {
  const TemporaryFolder folder;
  write_folder(folder / "data", {{"1.png", png(4, 4, 3)}});
  EXPECT_EQ(without(data_error(source(SourceKind::images, {folder / "data"})), folder.path()),
            "data: 1 of 1 samples is bad: 1.png: lies in no class folder. Repair or remove them, or say "
            "`bad_samples: skip`");
}

TEST(ReaderImagesErrors, NothingThere) {
  const TemporaryFolder folder;
  EXPECT_EQ(without(data_error(source(SourceKind::images, {folder / "none"})), folder.path()),
            "none: No such file or directory");
  std::filesystem::create_directories(folder / "empty");
  EXPECT_EQ(without(data_error(source(SourceKind::images, {folder / "empty"})), folder.path()),
            "empty: holds no image");
  for (const auto packing : {Packing::plain, Packing::gzip, Packing::zstd}) {
    write_tar(folder / "empty.tar", {}, packing);
    EXPECT_EQ(without(data_error(source(SourceKind::images, {folder / "empty.tar"})), folder.path()),
              "empty.tar: holds no image");
  }
  write_file(folder / "a.txt", "This is a text, not an archive of images.");
  EXPECT_EQ(without(data_error(source(SourceKind::images, {folder / "a.txt"})), folder.path()),
            "a.txt: neither a folder nor an archive such as .tar, .tar.gz or .tar.zst (Unrecognized archive format)");
  for (const auto& [name, kind] : {std::pair("a.TSV", ".tsv"), std::pair("a.jsonl.gz", ".jsonl")}) {
    write_file(folder / name, std::string(name).ends_with(".gz") ? gzip("{}\n") : "a\tb\n");
    EXPECT_EQ(
        without(data_error(source(SourceKind::images, {folder / name})), folder.path()),
        std::string(name) + ": expected a folder or an archive, found a " + kind +
            " file; `table:` reads one of numbers and categories, `csv:` one that names image files, `texts:` one "
            "of texts");
  }
}

TEST(ReaderImagesErrors, NoProgramIsStartedToUnpack) {
  const TemporaryFolder folder;
  write_file(folder / "lrzip", "#!/bin/sh\necho started > " + (folder / "started") + "\n");
  std::filesystem::permissions(folder / "lrzip", std::filesystem::perms::owner_all);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (folder.path() + ":" + path).c_str(), 1);
  write_file(folder / "a.lrz", std::string("LRZI\0\6", 6) + std::string(60, 'a'));
  EXPECT_EQ(without(data_error(source(SourceKind::images, {folder / "a.lrz"})), folder.path()),
            "a.lrz: neither a folder nor an archive such as .tar, .tar.gz or .tar.zst (Unrecognized archive format)");
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_FALSE(std::filesystem::exists(folder / "started"));
}

TEST(ReaderImagesErrors, TruncatedArchives) {
  const TemporaryFolder folder;
  const Members members{{"a/1.png", png(64, 64, 3, 1)}, {"a/2.png", png(64, 64, 3, 2)}};
  write_tar(folder / "a.tar", members, Packing::plain);
  std::filesystem::resize_file(folder / "a.tar", 600);
  EXPECT_EQ(without(data_error(source(SourceKind::images, {folder / "a.tar"})), folder.path()),
            "a.tar: truncated tar: a/1.png ends at byte " + std::to_string(512 + members[0].second.size()) +
                ", the archive at byte 600");
  write_tar(folder / "a.tar.gz", members, Packing::gzip);
  std::filesystem::resize_file(folder / "a.tar.gz", std::filesystem::file_size(folder / "a.tar.gz") / 2);
  EXPECT_NE(data_error(source(SourceKind::images, {folder / "a.tar.gz"})).find("truncated gzip file"),
            std::string::npos);
}

TEST(ReaderImagesErrors, AFileThatChangesAfterIndexing) {
  const TemporaryFolder folder;
  write_folder(folder / "data", {{"a/1.png", png(4, 4, 3)}});
  const auto set = data::open(source(SourceKind::images, {folder / "data"}));
  write_file(folder / "data/a/1.png", "short");
  Sample sample;
  const auto message = message_of(ExitCode::data, [&] { set->read(0, sample); });
  EXPECT_NE(message.find("when the data set was indexed"), std::string::npos) << message;
}

TEST(ReaderImagesErrors, TheMessageBeginsWithThePlaceInTheJob) {
  auto options = source(SourceKind::images, {"/nonexistent"});
  options.place = {"job.yaml", 4, 7, "job.data.train.images"};
  EXPECT_EQ(data_error(options), "job.yaml:4:7: job.data.train.images: /nonexistent: No such file or directory");
}

}  // namespace
}  // namespace lockstep::test
