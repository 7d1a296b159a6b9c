// Reading has three results, and a file is written completely or not at all.
#include "core/files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "lockstep/error.hpp"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  Files() : folder_(testing::TempDir() + "files-" + std::to_string(getpid())), path_(folder_ + "/file") {
    fs::create_directories(folder_);
  }
  ~Files() override { fs::remove_all(folder_); }
  std::string folder_, path_;
};

/// Imitates a full disk: no file of this process grows beyond this.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &usual_), 0);
    const rlimit full{bytes, usual_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &full), 0);
  }
  ~FullDisk() {
    (void)setrlimit(RLIMIT_FSIZE, &usual_);
    (void)std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit usual_{};
  sighandler_t handler_;
};

template <class Function>
std::string message_of(Function&& function, ExitCode code = ExitCode::infrastructure) {
  try {
    function();
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
}

TEST_F(Files, WhatIsReadHasThreeResults) {
  EXPECT_EQ(read_whole_file(path_), std::nullopt);
  EXPECT_EQ(read_whole_file(path_ + "/below/a/file"), std::nullopt);
  write_whole_file(path_, "text");
  EXPECT_EQ(read_whole_file(path_), "text");
  EXPECT_EQ(read_whole_file(path_ + "/below"), std::nullopt);
  EXPECT_EQ(message_of([&] { (void)read_whole_file(folder_); }, ExitCode::data),
            folder_ + ": expected a file, found a folder");
  fs::create_symlink("loop", folder_ + "/loop");
  EXPECT_EQ(message_of([&] { (void)read_whole_file(folder_ + "/loop"); }),
            folder_ + "/loop: cannot open: Too many levels of symbolic links; try again when its disk answers");
  EXPECT_EQ(message_of([&] { (void)is_there(folder_ + "/loop"); }),
            folder_ +
                "/loop: cannot look for the file: Too many levels of symbolic links; try again when its disk "
                "answers");
}

TEST_F(Files, AFullDiskLeavesTheOldFileAndNothingElse) {
  write_whole_file(path_, "old");
  {
    const FullDisk disk(10);
    EXPECT_TRUE(message_of([&] {
                  write_whole_file(path_, std::string(100, 'x'));
                }).ends_with(".new: cannot write: File too large"));
  }
  EXPECT_EQ(read_whole_file(path_), "old");
  EXPECT_EQ(names_in(folder_), std::vector<std::string>{"file"});
}

TEST_F(Files, TwoThatWriteTheSameDoNotMix) {
  NewFile first(path_), second(path_);
  first.write(std::as_bytes(std::span(std::string_view("first"))));
  second.write(std::as_bytes(std::span(std::string_view("second"))));
  first.commit();
  EXPECT_EQ(read_whole_file(path_), "first");
  second.commit();
  EXPECT_EQ(read_whole_file(path_), "second");
  EXPECT_EQ(names_in(folder_), std::vector<std::string>{"file"});
}

TEST_F(Files, WhatIsNotCommittedIsRemoved) {
  { const NewFile file(path_); }
  EXPECT_EQ(names_in(folder_), std::vector<std::string>{});
}

TEST_F(Files, AnAppendIsWholeOrNothing) {
  const OpenFile file(path_, O_RDWR | O_CREAT | O_APPEND);
  file.append("one\n");
  {
    const FullDisk disk(6);
    EXPECT_EQ(message_of([&] { file.append("two\n"); }), path_ + ": cannot write: File too large");
  }
  file.append("three\n");
  EXPECT_EQ(read_whole_file(path_), "one\nthree\n");
}

TEST_F(Files, AFolderThatCannotBeMadeIsNamed) {
  write_whole_file(path_, "");
  EXPECT_EQ(message_of([&] { write_whole_file(path_ + "/below/file", ""); }),
            path_ + "/below: cannot create the folder: Not a directory");
}

}  // namespace
}  // namespace lockstep
