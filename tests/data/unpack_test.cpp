// How large compressed files may be when unpacked, and the copies of large ones.
#include "data/unpack.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "data/archive.hpp"
#include "data/reader_support.hpp"
#include "data/readers/file.hpp"

namespace lockstep::test {
namespace {

using data::UnpackLimits;

/// Text that does not repeat much.
std::string varied(std::size_t count) {
  std::string text;
  for (std::uint32_t x = 1; text.size() < count; x = x * 1664525 + 1013904223) text += std::to_string(x);
  text.resize(count);
  return text;
}

const Members& members() {
  static const Members all = {{"cat/1.txt", varied(3000)}, {"dog/1.txt", varied(5000)}, {"dog/2.txt", "short"}};
  return all;
}

/// With these limits, everything that unpacks to more than 1,000 bytes is large.
UnpackLimits small_limits(const TemporaryFolder& folder) {
  return {
      .small = 4096, .expansion = 20, .held = 1000, .held_without_copy = 1 << 20, .cache_directory = folder / "cache"};
}

std::vector<std::string> copies(const TemporaryFolder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "cache"))
    names.push_back(entry.path().filename());
  return names;
}

std::string text_of(const data::FileTree& tree, const data::FileTree::Entry& entry) {
  std::vector<std::byte> scratch;
  const auto bytes = tree.read(entry, 0, entry.size, scratch);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void expect_members(const data::FileTree& tree) {
  ASSERT_EQ(tree.files().size(), members().size());
  for (std::size_t i = 0; i < members().size(); ++i) {
    EXPECT_EQ(tree.files()[i].name, members()[i].first);
    EXPECT_EQ(text_of(tree, tree.files()[i]), members()[i].second);
  }
}

TEST(Unpack, ALargeArchiveIsUnpackedOnceAndReadFromTheCopy) {
  for (const auto& [name, packing] : {std::pair("a.tar.gz", Packing::gzip), std::pair("a.tar.zst", Packing::zstd)}) {
    const TemporaryFolder folder;
    write_tar(folder / name, members(), packing);
    const auto limits = small_limits(folder);
    const auto first = data::make_byte_counter(), second = data::make_byte_counter();
    expect_members(*data::open_tree(folder / name, first, nullptr, limits));
    ASSERT_EQ(copies(folder).size(), 1U);
    const auto made = std::filesystem::last_write_time(folder / "cache/" + copies(folder)[0]);
    const auto again = data::open_tree(folder / name, second, nullptr, limits);
    EXPECT_EQ(again->path(), folder / name);  // messages use the name that the user knows
    const auto listed = second->load();
    EXPECT_LT(listed, 10U * 512);  // only the headers of a plain tar
    expect_members(*again);
    EXPECT_EQ(std::filesystem::last_write_time(folder / "cache/" + copies(folder)[0]), made);
  }
}

TEST(Unpack, ASmallArchiveStaysInMemory) {
  const TemporaryFolder folder;
  write_tar(folder / "a.tar.gz", members(), Packing::gzip);
  auto limits = small_limits(folder);
  limits.held = 8005;
  expect_members(*data::open_tree(folder / "a.tar.gz", data::make_byte_counter(), nullptr, limits));
  EXPECT_FALSE(std::filesystem::exists(folder / "cache"));
}

TEST(Unpack, AnotherStateOfTheFileIsAnotherCopy) {
  const TemporaryFolder folder;
  const auto limits = small_limits(folder);
  write_tar(folder / "a.tar.gz", {{"x", varied(3000)}}, Packing::gzip);
  (void)data::open_tree(folder / "a.tar.gz", data::make_byte_counter(), nullptr, limits);
  const auto before = copies(folder);
  std::filesystem::remove(folder / "a.tar.gz");
  write_tar(folder / "a.tar.gz", members(), Packing::gzip);
  expect_members(*data::open_tree(folder / "a.tar.gz", data::make_byte_counter(), nullptr, limits));
  ASSERT_EQ(copies(folder).size(), 1U);  // the older one is removed
  EXPECT_NE(copies(folder), before);
}

TEST(Unpack, ALargeGzipFileIsReadFromACopyToo) {
  const TemporaryFolder folder;
  const auto limits = small_limits(folder);
  const std::string text = varied(3000);
  write_file(folder / "a.gz", gzip(text.substr(0, 2000)) + gzip(text.substr(2000)));  // gzip files may be concatenated
  for (int i = 0; i < 2; ++i) {
    const auto source = data::open_bytes(folder / "a.gz", data::make_byte_counter(), limits);
    EXPECT_EQ(source->name(), folder / "a.gz");
    ASSERT_EQ(source->size(), text.size());
    std::string read(1500, '\0');
    source->read(1500, std::as_writable_bytes(std::span(read)));
    EXPECT_EQ(read, text.substr(1500));
    EXPECT_EQ(copies(folder).size(), 1U);
  }
}

std::string only_copy(const TemporaryFolder& folder) {
  EXPECT_EQ(copies(folder).size(), 1U);
  return folder / "cache/" + copies(folder)[0];
}

void flip_bit(const std::string& path, std::uint64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(byte ^ 4));
}

TEST(Unpack, ABitThatFlipsInACopyIsNotRead) {
  constexpr std::size_t kBytes = 40'000;
  for (const std::uint64_t flipped : {std::uint64_t{20'000}, kBytes + 5}) {  // in the content, and in its checksums
    const TemporaryFolder folder;
    const auto limits = small_limits(folder);
    const std::string text = varied(kBytes);
    write_file(folder / "a.gz", gzip(text));
    const auto source = data::open_bytes(folder / "a.gz", data::make_byte_counter(), limits);
    const std::string copy = only_copy(folder);
    flip_bit(copy, flipped);
    std::string read(10, '\0');
    const auto read_at = [&](std::uint64_t at) { source->read(at, std::as_writable_bytes(std::span(read))); };
    read_at(100);
    EXPECT_EQ(read, text.substr(100, 10));
    EXPECT_EQ(message_of(ExitCode::infrastructure, [&] { read_at(30'000); }),
              folder / "a.gz: its unpacked copy " + copy +
                  " is damaged between the bytes 16384 and 32768 (CRC-32); it has been removed: run again to make it "
                  "anew");
    const auto again = data::open_bytes(folder / "a.gz", data::make_byte_counter(), limits);
    again->read(30'000, std::as_writable_bytes(std::span(read)));
    EXPECT_EQ(read, text.substr(30'000, 10));
  }
}

TEST(Unpack, ACopyThatIsCutOffOrNotOursIsMadeAnew) {
  const TemporaryFolder folder;
  const auto limits = small_limits(folder);
  write_tar(folder / "a.tar.gz", members(), Packing::gzip);
  const auto open = [&] { return data::open_tree(folder / "a.tar.gz", data::make_byte_counter(), nullptr, limits); };
  expect_members(*open());
  const std::string copy = only_copy(folder);
  const auto size = std::filesystem::file_size(copy);
  for (const std::uintmax_t bytes : {size - 1, size - 30, size / 2, std::uintmax_t{5}, std::uintmax_t{0}}) {
    std::filesystem::resize_file(copy, bytes);
    expect_members(*open());
    EXPECT_EQ(std::filesystem::file_size(only_copy(folder)), size);
  }
  write_tar(copy, {{"cat/1.txt", "of somebody else"}}, Packing::plain);
  expect_members(*open());
}

TEST(Unpack, ACopyThatIsCutOffWhileItIsReadIsNoticed) {
  const TemporaryFolder folder;
  write_file(folder / "a.gz", gzip(varied(40'000)));
  const auto source = data::open_bytes(folder / "a.gz", data::make_byte_counter(), small_limits(folder));
  std::filesystem::resize_file(only_copy(folder), 17'000);
  const std::string copy = only_copy(folder);
  std::string read(10, '\0');
  EXPECT_EQ(
      message_of(ExitCode::infrastructure, [&] { source->read(20'000, std::as_writable_bytes(std::span(read))); }),
      folder / "a.gz: its unpacked copy " + copy +
          " is damaged between the bytes 16384 and 32768 (CRC-32); it has been removed: run again to make it anew");
}

TEST(Unpack, WithoutACacheDirectoryMemoryHasToDo) {
  const TemporaryFolder folder;
  auto limits = small_limits(folder);
  limits.cache_directory.clear();
  write_tar(folder / "a.tar.gz", members(), Packing::gzip);
  write_file(folder / "a.gz", gzip(varied(3000)));
  expect_members(*data::open_tree(folder / "a.tar.gz", data::make_byte_counter(), nullptr, limits));
  EXPECT_EQ(data::open_bytes(folder / "a.gz", data::make_byte_counter(), limits)->size(), 3000U);
}

/// The error of opening the file as an archive, or as a gzip file.
std::string refusal(const TemporaryFolder& folder, const std::string& name, const UnpackLimits& limits) {
  const std::string text = message_of(ExitCode::data, [&] {
    const auto counter = data::make_byte_counter();
    if (name.ends_with(".gz") && !name.ends_with(".tar.gz")) {
      (void)data::open_bytes(folder / name, counter, limits);
    } else {
      (void)data::open_tree(folder / name, counter, nullptr, limits);
    }
  });
  std::string without_folder = text;
  for (std::size_t at = 0; (at = without_folder.find(folder.path() + "/")) != std::string::npos;) {
    without_folder.erase(at, folder.path().size() + 1);
  }
  return without_folder;
}

TEST(Unpack, ABombIsRefused) {
  const TemporaryFolder folder;
  const auto limits = small_limits(folder);
  write_file(folder / "a.gz", gzip(std::string(1 << 20, '\0')));
  write_tar(folder / "a.tar.gz", {{"x", std::string(1 << 20, '\0')}}, Packing::gzip);
  write_tar(folder / "a.tar.zst", {{"x", std::string(1 << 20, '\0')}}, Packing::zstd);
  for (const std::string name : {"a.gz", "a.tar.gz", "a.tar.zst"}) {
    const auto size = std::filesystem::file_size(folder / name);
    EXPECT_EQ(refusal(folder, name, limits),
              name + ": " + std::to_string(size) + " bytes that unpack to more than " +
                  std::to_string(std::max<std::uintmax_t>(4096, 20 * size)) +
                  ", as a decompression bomb does; if the data are sound, unpack the file yourself");
    // Nothing of it is left. (It may have been refused before a copy was begun.)
    EXPECT_TRUE(!std::filesystem::exists(folder / "cache") || copies(folder).empty());
  }
}

TEST(Unpack, WhatCannotBeHeldIsRefused) {
  const TemporaryFolder folder;
  auto limits = small_limits(folder);
  limits.held_without_copy = 2 << 20;
  limits.small = 16 << 20;
  write_file(folder / "cache", "a file, not a folder");
  write_file(folder / "a.gz", gzip(varied(3 << 20)));
  write_tar(folder / "a.tar.gz", {{"x", varied(3 << 20)}}, Packing::gzip);
  for (const std::string name : {"a.gz", "a.tar.gz"}) {
    EXPECT_EQ(
        refusal(folder, name, limits),
        name +
            ": unpacks to more than 2 MiB, which would be held in the memory of each rank (no copy on disk: cache: "
            "cannot "
            "create the folder: Not a directory). Unpack it yourself, or use a plain .tar or `lockstep data pack`");
    auto nowhere = limits;
    nowhere.cache_directory.clear();
    EXPECT_EQ(
        refusal(folder, name, nowhere),
        name +
            ": unpacks to more than 2 MiB, which would be held in the memory of each rank. Unpack it yourself, or "
            "use a plain .tar or `lockstep data pack`");
  }
}

}  // namespace
}  // namespace lockstep::test
