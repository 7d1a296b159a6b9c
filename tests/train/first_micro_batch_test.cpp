// Ranks that compute different bits for the job's first micro-batch are told so before the first step.
#include "run/train/start_check.hpp"

#include <gtest/gtest.h>

#include <mutex>

#include "core/unfit_hosts.hpp"
#include "data/digits.hpp"
#include "run/train/fingerprint.hpp"
#include "train/small_run.hpp"

namespace lockstep {
namespace {

/// Digits whose samples all have a different first pixel; the digest does not show it.
class ChangedDigits final : public DataSet {
 public:
  ChangedDigits() : inner_(data::make_digits(64)) {}
  [[nodiscard]] const DataSetInfo& info() const override { return inner_->info(); }
  [[nodiscard]] std::int64_t size() const override { return inner_->size(); }
  void read(std::int64_t id, Sample& out) const override {
    inner_->read(id, out);
    out[0].tensor.as<std::uint8_t>()[0] ^= 1;
  }

 private:
  std::shared_ptr<const DataSet> inner_;
};

struct Heard {
  std::vector<std::string> errors, warnings;
  std::string fingerprint, exactness;
};

/// Three ranks on two hosts; rank 1, alone on the second one, reads the changed digits.
Heard train(const std::string& exact) {
  Heard heard;
  std::mutex mutex;
  const Registries registries = Registries::built_in();
  const Folder folder;
  const JobFile job =
      config::load_text(kJob, "job.yaml", {"run_directory=" + folder.path(), "exact=" + exact, "evaluate=never"},
                        train::catalogue_of(registries), false);
  run_in_threads(3,
                 [&](Communicator& communicator) {
                   Events events;
                   TrainerOptions options;
                   options.sink = &events;
                   DataSets own{.train = data::make_digits(64)};
                   if (communicator.rank() == 1) own.train = std::make_shared<ChangedDigits>();
                   std::string error;
                   try {
                     (void)train_job(job, communicator, registries, options, own);
                   } catch (const Error& thrown) {
                     EXPECT_EQ(thrown.code(), ExitCode::unfit_host);
                     error = thrown.what();
                   }
                   const std::lock_guard lock(mutex);
                   if (!error.empty()) heard.errors.push_back(error);
                   if (communicator.rank() != 0) return;
                   for (const auto& warning : events.of<events::Warning>()) {
                     heard.warnings.push_back(warning.message);
                   }
                   heard.fingerprint = events.last<events::Start>().fingerprint;
                   heard.exactness = events.last<events::Start>().exactness;
                 },
                 {0, 1, 0});
  return heard;
}

TEST(FirstMicroBatch, OtherBitsAreRefusedWhereTheJobRequiresThem) {
  const Heard heard = train("required");
  ASSERT_EQ(heard.errors.size(), 3U);
  EXPECT_TRUE(heard.errors[0].starts_with("rank 1 on b: its first micro-batch differs: expected loss and gradients "))
      << heard.errors[0];
  EXPECT_TRUE(
      heard.errors[0].ends_with("; use one kind of processor or GPU and one version of the libraries, or set "
                                "exact: preferred"))
      << heard.errors[0];
}

TEST(FirstMicroBatch, OtherBitsAreToldWhereTheyArePreferred) {
  const Heard heard = train("preferred");
  EXPECT_EQ(heard.errors, std::vector<std::string>{});
  ASSERT_EQ(heard.warnings.size(), 1U);
  EXPECT_TRUE(heard.warnings[0].starts_with("rank 1 on b: its first micro-batch differs: ")) << heard.warnings[0];
  EXPECT_NE(heard.fingerprint.find(", first micro-batch "), std::string::npos) << heard.fingerprint;
  EXPECT_EQ(heard.exactness, "exact gradient, not bitwise");
}

TEST(FirstMicroBatch, NobodyAsksWhereBitsDoNotMatter) {
  const Heard heard = train("never");
  EXPECT_EQ(heard.errors, std::vector<std::string>{});
  EXPECT_EQ(heard.fingerprint.find("first micro-batch"), std::string::npos) << heard.fingerprint;
}

TEST(LibraryBuilds, NameWhatDecodesAndComputes) {
  const std::string builds = train::library_builds();
  for (const char* library : {"libdnnl ", "libjpeg ", "libm ", "libpng16 "}) {
    const auto at = builds.find(library);
    ASSERT_NE(at, std::string::npos) << library << " in " << builds;
    const std::string digits = builds.substr(at + std::string(library).size(), 6);
    EXPECT_EQ(digits.find_first_not_of("0123456789abcdef"), std::string::npos) << builds;
  }
  EXPECT_LT(builds.size(), 100U) << "it has to fit into a start fact, with the processor's name";
}

}  // namespace
}  // namespace lockstep
