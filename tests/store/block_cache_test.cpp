// The parts of objects that a host keeps: fetched once, whole or not there, within a limit.
#include "data/store/block_cache.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace lockstep::store {
namespace {

namespace fs = std::filesystem;

class BlockCacheTest : public testing::Test {
 protected:
  void SetUp() override { folder_ = fs::temp_directory_path() / ("blocks-" + std::to_string(::getpid())); }
  void TearDown() override { fs::remove_all(folder_); }

  /// A block of `bytes` bytes `value`, of which bytes 10 to 13 are read.
  std::vector<std::byte> read(BlockCache& cache, const std::string& object, std::uint64_t number, std::byte value,
                              std::uint64_t bytes = 1000) {
    std::vector<std::byte> out(4);
    cache.read(object, number, bytes, 10, out, [&](std::span<std::byte> block) {
      ++fetched_;
      EXPECT_EQ(block.size(), bytes);
      std::fill(block.begin(), block.end(), value);
    });
    return out;
  }
  /// A disk of 100,000 bytes of which `available` are free, whatever this machine's has.
  static DiskSpace disk_with(std::uintmax_t available) {
    return [=](const std::string&) {
      return fs::space_info{.capacity = 100000, .free = available, .available = available};
    };
  }
  [[nodiscard]] std::string cache_folder() const { return folder_.string(); }
  [[nodiscard]] std::string folder() const { return (folder_ / "objects").string(); }
  [[nodiscard]] std::uint64_t kept() const {
    std::uint64_t bytes = 0;
    for (const auto& entry : fs::directory_iterator(folder())) bytes += entry.file_size();
    return bytes;
  }
  std::atomic<int> fetched_ = 0;

 private:
  fs::path folder_;
};

TEST_F(BlockCacheTest, FetchesABlockOnceAlsoForTheNextProcess) {
  BlockCache cache(cache_folder(), 0), next(cache_folder(), 0);
  EXPECT_EQ(read(cache, "a", 0, std::byte{7}), std::vector(4, std::byte{7}));
  EXPECT_EQ(read(cache, "a", 0, std::byte{8}), std::vector(4, std::byte{7}));
  EXPECT_EQ(read(next, "a", 0, std::byte{8}), std::vector(4, std::byte{7}));
  EXPECT_EQ(fetched_, 1);
  EXPECT_EQ(read(cache, "a", 1, std::byte{8}), std::vector(4, std::byte{8}));
  EXPECT_EQ(read(cache, "b", 0, std::byte{9}), std::vector(4, std::byte{9}));
  EXPECT_EQ(fetched_, 3);
  EXPECT_EQ(kept(), 3 * 1004U);  // each with a checksum, and nothing else: no locks, no partial files
}

TEST_F(BlockCacheTest, ThreadsThatWantTheSameBlockWaitForOne) {
  BlockCache cache(cache_folder(), 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      std::vector<std::byte> out(4);
      cache.read("a", 0, 1000, 0, out, [&](std::span<std::byte> block) {
        ++fetched_;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        std::fill(block.begin(), block.end(), std::byte{5});
      });
      EXPECT_EQ(out, std::vector(4, std::byte{5}));
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(fetched_, 1);
}

TEST_F(BlockCacheTest, ABlockOfTheWrongLengthIsFetchedAgain) {
  BlockCache cache(cache_folder(), 0);
  fs::create_directories(folder());
  std::ofstream(folder() + "/a-0") << "torn";
  EXPECT_EQ(read(cache, "a", 0, std::byte{7}), std::vector(4, std::byte{7}));
  EXPECT_EQ(read(cache, "a", 0, std::byte{8}), std::vector(4, std::byte{7}));
}

TEST_F(BlockCacheTest, ADamagedPieceIsFetchedAgain) {
  constexpr std::uint64_t kBytes = 200000;  // four pieces
  BlockCache cache(cache_folder(), 0);
  const auto read_at = [&](std::uint64_t offset, std::size_t count, std::byte value) {
    std::vector<std::byte> out(count);
    cache.read("a", 0, kBytes, offset, out, [&](std::span<std::byte> block) {
      ++fetched_;
      std::fill(block.begin(), block.end(), value);
    });
    return out;
  };
  (void)read_at(0, 4, std::byte{7});
  const auto flip = [&](std::uint64_t offset) {
    std::fstream file(folder() + "/a-0", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset)).put('x');
  };
  flip(70000);
  EXPECT_EQ(read_at(10, 60000, std::byte{8}), std::vector(60000, std::byte{7})) << "of another piece";
  EXPECT_EQ(read_at(60000, 6000, std::byte{8}), std::vector(6000, std::byte{8}));
  EXPECT_EQ(fetched_, 2);
  flip(kBytes + 12);  // the last checksum
  EXPECT_EQ(read_at(199996, 4, std::byte{9}), std::vector(4, std::byte{9}));
  EXPECT_EQ(fetched_, 3);
}

TEST_F(BlockCacheTest, AFailedFetchLeavesNoBlock) {
  BlockCache cache(cache_folder(), 0);
  std::vector<std::byte> out(4);
  EXPECT_THROW(cache.read("a", 0, 1000, 0, out, [](std::span<std::byte>) { throw std::runtime_error("lost"); }),
               std::runtime_error);
  EXPECT_EQ(read(cache, "a", 0, std::byte{7}), std::vector(4, std::byte{7}));
}

TEST_F(BlockCacheTest, TheLeastRecentlyUsedGoFirst) {
  BlockCache cache(cache_folder(), 3500, disk_with(20000));
  for (int i = 0; i < 3; ++i) (void)read(cache, "a", static_cast<std::uint64_t>(i), std::byte{7});
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(folder() + "/a-0", now - std::chrono::minutes(1));
  fs::last_write_time(folder() + "/a-1", now - std::chrono::minutes(3));
  fs::last_write_time(folder() + "/a-2", now - std::chrono::minutes(2));
  EXPECT_EQ(read(cache, "a", 0, std::byte{7}), std::vector(4, std::byte{7}));
  (void)read(cache, "a", 3, std::byte{7});
  EXPECT_EQ(kept(), 3 * 1004U);
  EXPECT_FALSE(fs::exists(folder() + "/a-1"));
}

TEST_F(BlockCacheTest, ATwentiethOfTheDiskStaysFree) {
  BlockCache cache(cache_folder(), 8000, disk_with(3500));  // of 100,000: 1,500 too few
  fs::create_directories(folder());
  for (int i = 0; i < 3; ++i) {
    const std::string path = folder() + "/dead-" + std::to_string(i);
    std::ofstream(path) << std::string(1000, 'x');
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::minutes(3 - i));
  }
  (void)read(cache, "a", 0, std::byte{7});
  EXPECT_EQ(kept(), 1000U + 1004U);
  EXPECT_TRUE(fs::exists(folder() + "/dead-2"));
  EXPECT_TRUE(fs::exists(folder() + "/a-0"));
}

TEST_F(BlockCacheTest, WhereNothingCanBeWrittenBytesArePassedOn) {
  BlockCache cache("/proc/nowhere", 0);
  EXPECT_EQ(read(cache, "a", 0, std::byte{7}), std::vector(4, std::byte{7}));
  EXPECT_EQ(read(cache, "a", 0, std::byte{8}), std::vector(4, std::byte{8}));
}

}  // namespace
}  // namespace lockstep::store
