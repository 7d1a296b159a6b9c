// Paths in a job: where they are looked up, globs, and the messages if nothing is found.
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "config/config.hpp"
#include "config/test_catalogue.hpp"

namespace lockstep::config {
namespace {

namespace fs = std::filesystem;

/// A temporary folder with jobs/ (for job.yaml) and files.
class Files : public testing::Test {
 protected:
  Files() : root_(fs::temp_directory_path() / ("lockstep-config-" + std::to_string(getpid()))) {
    for (const auto* name : {"jobs/near.tar", "jobs/b.tar", "jobs/a.tar"}) {
      fs::create_directories((root_ / name).parent_path());
      std::ofstream(root_ / name) << "x";
    }
  }
  ~Files() override { fs::remove_all(root_); }

  JobFile load_job(const std::string& source, bool need_data, const std::vector<std::string>& overrides = {}) {
    const fs::path path = root_ / "jobs/job.yaml";
    std::ofstream(path) << "job: {model: lenet, epochs: 1, data: {train: " << source << "}}\n";
    return load(path.string(), overrides, test_catalogue(), need_data);
  }
  std::string in_folder(const std::string& name) { return (root_ / "jobs" / name).string(); }

  fs::path root_;
};

TEST_F(Files, BesideTheJobFileFirst) {
  EXPECT_EQ(load_job("{images: near.tar}", true).data.train.paths, std::vector<std::string>{in_folder("near.tar")});
}

TEST_F(Files, ElseInTheWorkingDirectory) {
  EXPECT_EQ(load_job("{images: somewhere.tar}", false).data.train.paths, std::vector<std::string>{"somewhere.tar"});
}

TEST_F(Files, OverridesAreOfTheWorkingDirectory) {
  const JobFile job = load_job("{images: near.tar}", false, {"data.train.images=near.tar"});
  EXPECT_EQ(job.data.train.paths, std::vector<std::string>{"near.tar"});
}

TEST_F(Files, GlobsAreExpandedInOrder) {
  const SourceOptions train = load_job("{images: '[ab].tar'}", true).data.train;
  EXPECT_EQ(train.paths, (std::vector<std::string>{in_folder("a.tar"), in_folder("b.tar")}));
  EXPECT_EQ(train.patterns, std::vector<std::string>{in_folder("[ab].tar")});
  EXPECT_EQ(load_job("{images: ['*.tar']}", true).data.train.paths.size(), 3u);
}

TEST_F(Files, GlobsStayWhereDataAreNotNeeded) {
  EXPECT_EQ(load_job("{images: '*.tar'}", false).data.train.paths, std::vector<std::string>{in_folder("*.tar")});
}

TEST_F(Files, APathOfCifarMayGoOnIntoAnArchive) {
  EXPECT_EQ(load_job("{cifar: near.tar/test_batch.bin}", true).data.train.paths,
            std::vector<std::string>{in_folder("near.tar/test_batch.bin")});
  for (const std::string source : {"{images: near.tar/cat}", "{cifar: none.tar/test_batch.bin}"}) {
    const std::string path = source.substr(source.find(' ') + 1, source.find('}') - source.find(' ') - 1);
    try {
      (void)load_job(source, true);
      FAIL() << source;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("expected data, found nothing at '" + path + "'"), std::string::npos)
          << error.what();
    }
  }
}

TEST_F(Files, DigestsDoNotDependOnWhetherDataAreThere) {
  const auto digest = [&](bool need_data) {
    return canonical(load_job("{images: '*.tar'}", need_data), test_catalogue()).digest;
  };
  EXPECT_EQ(digest(false), digest(true));
}

TEST_F(Files, AMissingJobFileIsNamed) {
  try {
    (void)load("no/such/job.yaml", {}, test_catalogue(), false);
    FAIL() << "a file that is not there was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_STREQ(error.what(), "no/such/job.yaml: expected a job file, found none that can be read; check the path");
  }
}

}  // namespace
}  // namespace lockstep::config
