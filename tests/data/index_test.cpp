// What is stored of an index, when it is trusted, and what it saves.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>

#include "data/index_cache.hpp"
#include "data/pack.hpp"
#include "data/reader_support.hpp"
#include "data/statistics.hpp"

namespace lockstep::test {
namespace {

namespace fs = std::filesystem;
using data::IndexCache;
using data::IndexNotes;

const std::string& take(IndexNotes& notes, const std::string& name, const std::string& made) {
  return notes.take(name, [&] { return made; });
}

TEST(IndexNotes, ANoteIsMadeOnce) {
  IndexNotes notes;
  EXPECT_FALSE(notes.made_any());
  EXPECT_EQ(take(notes, "a", "first"), "first");
  EXPECT_EQ(take(notes, "a", "second"), "first");
  EXPECT_TRUE(notes.made_any());
  IndexNotes copy = IndexNotes::read(notes.write());
  EXPECT_EQ(take(copy, "a", "third"), "first");
  EXPECT_FALSE(copy.made_any());
}

TEST(IndexNotes, BytesThatAreNotTheirsAreRefused) {
  IndexNotes notes;
  take(notes, "a", "first");
  const std::string bytes = notes.write();
  EXPECT_EQ(message_of(ExitCode::data, [&] { (void)IndexNotes::read(bytes.substr(0, bytes.size() - 1)); }),
            "index notes end too early");
  EXPECT_EQ(message_of(ExitCode::data, [&] { (void)IndexNotes::read(bytes + "x"); }),
            "index notes are longer than they say");
}

TEST(IndexNotes, AnyChangeOfTheFilesShows) {
  const TemporaryFolder folder;
  write_file(folder / "set/a/1", "one");
  write_file(folder / "file", "two");
  const auto notes_of = [&] {
    IndexNotes notes;
    notes.made_from_folder(folder / "set");
    notes.made_from_file(folder / "file");
    notes.made_from_file(folder / "absent");
    return notes;
  };
  const auto changed_by = [&](const auto& change) {
    const IndexNotes notes = notes_of();
    EXPECT_TRUE(notes.are_current());
    change();
    return !notes.are_current();
  };
  EXPECT_FALSE(IndexNotes().are_current()) << "of no file";
  EXPECT_TRUE(changed_by([&] { write_file(folder / "file", "other"); }));
  EXPECT_TRUE(changed_by([&] { write_file(folder / "absent", ""); }));
  EXPECT_TRUE(changed_by([&] { fs::remove(folder / "file"); }));
  EXPECT_TRUE(changed_by([&] { write_file(folder / "set/a/2", "new"); }));
  EXPECT_TRUE(changed_by([&] { fs::rename(folder / "set/a/2", folder / "set/a/3"); }));
  EXPECT_TRUE(changed_by([&] { fs::remove_all(folder / "set/a"); }));
}

TEST(IndexNotes, AChangeThatPutsSizeAndTimeBackShows) {
  const TemporaryFolder folder;
  write_file(folder / "file", "one");
  IndexNotes notes;
  notes.made_from_file(folder / "file");
  const auto time = fs::last_write_time(folder / "file");
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (notes.are_current() && std::chrono::steady_clock::now() < until) {  // until the file system's clock has ticked
    write_file(folder / "file", "two");
    fs::last_write_time(folder / "file", time);
  }
  EXPECT_FALSE(notes.are_current());
}

// The cache.

struct Cached {
  TemporaryFolder folder;
  SourceOptions options = source(SourceKind::images, {folder / "set"});
  IndexNotes notes;
  Cached() {
    write_file(folder / "set/a/1.png", png(4, 4, 3));
    notes.made_from_folder(folder / "set");
    take(notes, "note", "text");
  }
  [[nodiscard]] IndexCache cache() const { return IndexCache(folder / "cache"); }
};

TEST(IndexCache, KeepsNotesBySourceAndSettings) {
  Cached kept;
  const auto& options = kept.options;
  EXPECT_FALSE(kept.cache().find(options));
  EXPECT_EQ(kept.cache().store(options, kept.notes), "");
  auto found = kept.cache().find(options);
  ASSERT_TRUE(found);
  EXPECT_EQ(take(*found, "note", "another"), "text");
  EXPECT_EQ(std::distance(fs::directory_iterator(kept.folder / "cache"), {}), 1) << "no other file is left";

  for (const auto& change : std::vector<void (*)(SourceOptions&)>{
           [](SourceOptions& o) { o.kind = SourceKind::csv; }, [](SourceOptions& o) { o.paths[0] += "/a"; },
           [](SourceOptions& o) { o.labels = "x"; }, [](SourceOptions& o) { o.tokenizer = Tokenizer::bytes; },
           [](SourceOptions& o) { o.tokenizer_file = "tokenizer.json"; },
           [](SourceOptions& o) { o.text_column = "body"; }, [](SourceOptions& o) { o.label_column = "kind"; },
           [](SourceOptions& o) { o.mask = "mask"; }, [](SourceOptions& o) { o.classes = {"a"}; },
           [](SourceOptions& o) { o.target = {"a"}; }, [](SourceOptions& o) { o.features = {"a"}; },
           [](SourceOptions& o) { o.window = 3; },
           [](SourceOptions& o) {
             o.horizon = {1, 2};
           },
           [](SourceOptions& o) { o.series = "a"; }, [](SourceOptions& o) { o.time = "a"; },
           [](SourceOptions& o) { o.part = SourcePart::test; }}) {
    SourceOptions other = options;
    change(other);
    EXPECT_NE(kept.cache().path_of(other), kept.cache().path_of(options));
  }
  SourceOptions same = options;
  same.count = 3;
  same.paths[0] = kept.folder / "./set";
  EXPECT_EQ(kept.cache().path_of(same), kept.cache().path_of(options));
}

TEST(IndexCache, AStaleFileIsNotBelieved) {
  Cached kept;
  EXPECT_EQ(kept.cache().store(kept.options, kept.notes), "");
  write_file(kept.folder / "set/a/2.png", png(4, 4, 3));
  EXPECT_FALSE(kept.cache().find(kept.options));
}

TEST(IndexCache, ADamagedFileIsNotBelieved) {
  Cached kept;
  EXPECT_EQ(kept.cache().store(kept.options, kept.notes), "");
  const std::string path = kept.cache().path_of(kept.options), whole = read_file(path);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    write_file(path, damaged);
    EXPECT_FALSE(kept.cache().find(kept.options)) << "byte " << i;
    write_file(path, whole.substr(0, i));
    EXPECT_FALSE(kept.cache().find(kept.options)) << "cut to " << i;
  }
  write_file(path, whole);
  EXPECT_TRUE(kept.cache().find(kept.options));
}

TEST(IndexCache, ADirectoryThatCannotBeWrittenIsNoError) {
  Cached kept;
  write_file(kept.folder / "file", "");
  const IndexCache below_a_file(kept.folder / "file/cache"), none("");
  EXPECT_EQ(without(below_a_file.store(kept.options, kept.notes), kept.folder.path()),
            "file/cache: cannot create the folder: Not a directory");
  EXPECT_FALSE(below_a_file.find(kept.options));
  EXPECT_EQ(none.store(kept.options, kept.notes), "there is no cache directory");
  EXPECT_FALSE(none.find(kept.options));
}

// What a reader reads if its source's notes are present.

struct Opened {
  std::unique_ptr<DataSet> set;
  std::uint64_t bytes = 0;
};

Opened open_with(const SourceOptions& options, IndexNotes& notes) {
  Opened opened{data::open(options, {.notes = &notes})};
  opened.bytes = opened.set->bytes_read();
  return opened;
}

std::string raw(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.bytes()), tensor.spec().bytes()};
}

/// Opens twice, the second time with the notes of the first; returns the bytes read the second time.
std::uint64_t bytes_with_notes(const SourceOptions& options) {
  IndexNotes notes;
  const auto first = open_with(options, notes);
  IndexNotes again = IndexNotes::read(notes.write());
  EXPECT_TRUE(again.are_current()) << name_of(options.kind);
  const auto second = open_with(options, again);
  EXPECT_FALSE(again.made_any()) << name_of(options.kind);
  EXPECT_EQ(first.set->size(), second.set->size());
  EXPECT_EQ(first.set->info().digest, second.set->info().digest);
  EXPECT_EQ(first.set->info().class_counts, second.set->info().class_counts);
  EXPECT_EQ(first.set->info().skipped, second.set->info().skipped);
  EXPECT_EQ(first.set->info().token_text, second.set->info().token_text);
  EXPECT_EQ(first.set->info().vocabulary, second.set->info().vocabulary);
  Sample one, other;
  for (std::int64_t id = 0; id < first.set->size(); ++id) {
    first.set->read(id, one);
    second.set->read(id, other);
    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_EQ(raw(one[i].tensor), raw(other[i].tensor)) << name_of(options.kind) << " " << id;
    }
    EXPECT_EQ(first.set->name(id), second.set->name(id));
  }
  return second.bytes;
}

Members images() {
  return {{"a/1.png", png(16, 16, 3, 1)}, {"a/2.jpg", jpeg(16, 16, 3, 2)}, {"b/1.png", png(8, 8, 1, 3)}};
}

TEST(IndexedReader, FoldersAndPlainTarsAreNotLookedAtAgain) {
  const TemporaryFolder folder;
  write_folder(folder / "set", images());
  write_tar(folder / "set.tar", images(), Packing::plain);
  write_tar(folder / "set.tar.gz", images(), Packing::gzip);
  EXPECT_EQ(bytes_with_notes(source(SourceKind::images, {folder / "set"})), 0U);
  EXPECT_EQ(bytes_with_notes(source(SourceKind::images, {folder / "set.tar"})), 512U) << "what kind of file it is";
  EXPECT_GE(bytes_with_notes(source(SourceKind::images, {folder / "set.tar.gz"})),
            fs::file_size(folder / "set.tar.gz"));
}

TEST(IndexedReader, BadSamplesAreNoted) {
  const TemporaryFolder folder;
  write_folder(folder / "set", images());
  write_file(folder / "set/b/2.png", "no image");
  auto options = source(SourceKind::images, {folder / "set"});
  options.bad_samples = BadWhenIndexed::skip;
  EXPECT_EQ(bytes_with_notes(options), 0U);
  IndexNotes notes;
  (void)open_with(options, notes);
  options.bad_samples = BadWhenIndexed::refuse;
  EXPECT_EQ(without(message_of(ExitCode::data, [&] { (void)open_with(options, notes); }), folder.path()),
            "set: 1 of 4 samples is bad: b/2.png: not a JPEG or PNG file (begins with 6e 6f 20 69). Repair or remove "
            "them, or say `bad_samples: skip`");
}

TEST(IndexedReader, OfACsvTheTableIsRead) {
  const TemporaryFolder folder;
  write_folder(folder.path(), images());
  const std::string table = "left,right,label\na/1.png,b/1.png,same\na/2.jpg,a/1.png,other\nnone.png,a/1.png,other\n";
  write_file(folder / "t.csv", table);
  auto options = source(SourceKind::csv, {folder / "t.csv"});
  options.bad_samples = BadWhenIndexed::skip;
  EXPECT_EQ(bytes_with_notes(options), table.size() + 2) << "2: is it gzip?";
}

TEST(IndexedReader, OfRecordsOnlyTheHeads) {
  const TemporaryFolder folder;
  std::string batch;
  for (int i = 0; i < 5; ++i) batch += static_cast<char>(i) + std::string(3072, static_cast<char>(40 * i));
  write_file(folder / "data_batch_1.bin", batch);
  EXPECT_EQ(bytes_with_notes(source(SourceKind::cifar, {folder / "data_batch_1.bin"})), 2U) << "is it gzip?";
  EXPECT_EQ(bytes_with_notes(source(SourceKind::cifar, {folder.path()})), 2U);

  const std::string head("\0\0\x08\x03\0\0\0\2\0\0\0\1\0\0\0\1", 16), labels("\0\0\x08\1\0\0\0\2", 8);
  write_file(folder / "mnist/train-images-idx3-ubyte", head + "pq");
  write_file(folder / "mnist/train-labels-idx1-ubyte", labels + std::string("\1\0", 2));
  EXPECT_EQ(bytes_with_notes(source(SourceKind::idx, {folder / "mnist"})), 2U + 16 + 2 + 8 + 2);
}

TEST(IndexedReader, OfTokensNothing) {
  const TemporaryFolder folder;
  write_file(folder / "t.bin", std::string(1000, '\0'));
  auto options = source(SourceKind::tokens, {folder / "t.bin"});
  options.context = 8;
  EXPECT_EQ(bytes_with_notes(options), 0U);
}

TEST(IndexedReader, TextIsHeldSoItIsRead) {
  const TemporaryFolder folder;
  write_file(folder / "t.txt", "the quick brown fox jumps over the lazy dog");
  auto options = source(SourceKind::text, {folder / "t.txt"});
  options.context = 8;
  EXPECT_EQ(bytes_with_notes(options), 43U + 2);
}

TEST(IndexedReader, AnotherLabelFileIsNotTheNotedOne) {
  const TemporaryFolder folder;
  const std::string head("\0\0\x08\x03\0\0\0\2\0\0\0\1\0\0\0\1", 16), labels("\0\0\x08\1\0\0\0\2", 8);
  write_file(folder / "train-images-idx3-ubyte", head + "pq");
  write_file(folder / "train-labels-idx1-ubyte.gz", gzip(labels + std::string("\1\0", 2)));
  IndexNotes notes;
  const auto options = source(SourceKind::idx, {folder.path()});
  const auto first = open_with(options, notes);
  write_file(folder / "train-labels-idx1-ubyte", labels + std::string("\0\1", 2));
  IndexNotes later = IndexNotes::read(notes.write());
  const auto second = open_with(options, later);
  EXPECT_EQ(second.set->label(0), 0);
  EXPECT_NE(first.set->info().digest, second.set->info().digest);
}

TEST(IndexedReader, StatisticsAreNotedToo) {
  const TemporaryFolder folder;
  write_folder(folder / "set", images());
  IndexNotes notes;
  const auto first = open_with(source(SourceKind::images, {folder / "set"}), notes);
  const auto computed = data::channel_statistics(*first.set, {.notes = &notes});
  IndexNotes again = IndexNotes::read(notes.write());
  const auto second = open_with(source(SourceKind::images, {folder / "set"}), again);
  const auto noted = data::channel_statistics(*second.set, {.notes = &again});
  EXPECT_EQ(computed.mean, noted.mean);
  EXPECT_EQ(computed.stddev, noted.stddev);
  EXPECT_FALSE(again.made_any());
  EXPECT_EQ(second.set->bytes_read(), 0U);
}

}  // namespace
}  // namespace lockstep::test
