#include "core/cache_directory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <vector>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class CacheRoom : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("room-" + std::to_string(::getpid()));
    fs::create_directories(folder_ / kObjectsFolder);
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// A file of 1,000 bytes that was used so many minutes ago.
  void add(const std::string& name, int minutes) {
    std::ofstream(folder_ / name) << std::string(1000, 'x');
    fs::last_write_time(folder_ / name, fs::file_time_type::clock::now() - std::chrono::minutes(minutes));
  }
  [[nodiscard]] bool has(const std::string& name) const { return fs::exists(folder_ / name); }
  /// On a disk of 100,000 bytes.
  void make_room(std::uint64_t limit, const std::string& added, std::uintmax_t available = 50000) {
    lockstep::make_room(folder_.string(), limit, (folder_ / added).string(), [=](const std::string&) {
      return fs::space_info{.capacity = 100000, .free = available, .available = available};
    });
  }
  fs::path folder_;
};

TEST_F(CacheRoom, OneLimitHoldsForAllKindsOfEntries) {
  add("index-a", 4);
  add("objects/a-0", 3);
  add("unpacked-a-b", 2);
  add("objects/a-1", 1);
  make_room(0, "");
  EXPECT_TRUE(has("index-a")) << "no limit";
  make_room(2000, "");
  EXPECT_FALSE(has("index-a"));
  EXPECT_FALSE(has("objects/a-0"));
  EXPECT_TRUE(has("unpacked-a-b"));
  EXPECT_TRUE(has("objects/a-1"));
}

TEST_F(CacheRoom, FilesOfOthersAndThoseBeingWrittenStay) {
  add("thesis.tex", 9);
  for (const char* name : {"unpacked-a-b.123.new", "index-mine.txt", "index-a.lock", "objects/a-0.lock"}) add(name, 8);
  fs::create_directories(folder_ / "index-0");
  fs::last_write_time(folder_ / "index-0", fs::file_time_type::clock::now() - std::chrono::minutes(9));
  add("index-a", 1);
  make_room(1, "");
  for (const char* name :
       {"thesis.tex", "unpacked-a-b.123.new", "index-mine.txt", "index-a.lock", "objects/a-0.lock", "index-0"}) {
    EXPECT_TRUE(has(name)) << name;
  }
  EXPECT_FALSE(has("index-a"));
}

TEST_F(CacheRoom, WhatWasJustAddedStaysAlsoOnAFullDisk) {
  add("unpacked-a-b", 0);
  add("objects/a-0", 1);
  make_room(0, "unpacked-a-b", 100);
  EXPECT_TRUE(has("unpacked-a-b")) << "the other ranks of the host wait for it";
  EXPECT_FALSE(has("objects/a-0"));
}

TEST_F(CacheRoom, AUseIsNoted) {
  add("index-a", 5);
  add("index-b", 4);
  note_use((folder_ / "index-a").string());
  make_room(1000, "");
  EXPECT_TRUE(has("index-a"));
  EXPECT_FALSE(has("index-b"));
  note_use((folder_ / "missing").string());
  lockstep::make_room("/proc/nowhere", 1, "");
}

}  // namespace
}  // namespace lockstep
