// A run's metrics for Prometheus: served while it runs, written at its end, and without effect on a bit of the run.
#include "observe/run_metrics.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <nlohmann/json.hpp>

#include "core/files.hpp"
#include "lockstep/error.hpp"
#include "telemetry/http_get.hpp"
#include "train/small_run.hpp"

namespace lockstep {

namespace {

nlohmann::json json_of(const std::string& path) {
  return nlohmann::json::parse(read_whole_file(path).value_or("null"));
}

nlohmann::json targets_of(const std::string& directory) {
  return json_of(directory + "/metrics/targets.json");
}

int port_of(const nlohmann::json& target) {
  const std::string address = target.at("targets").at(0);
  return std::stoi(address.substr(address.rfind(':') + 1));
}

/// The number in the first line that begins with `series`.
double value_of(const std::string& text, const std::string& series) {
  const auto at = text.find("\n" + series);
  if (at == std::string::npos) return std::nan("");
  const auto end = text.find('\n', at + 1);
  return std::stod(text.substr(text.rfind(' ', end - 1) + 1));
}

/// Scrapes a rank after some steps.
class Scraper final : public RunWatcher {
 public:
  Scraper(std::string directory, int rank, std::int64_t step)
      : directory_(std::move(directory)), rank_(rank), step_(step) {}
  void step_done(std::int64_t step) override {
    if (step != step_) return;
    targets = targets_of(directory_);
    shared = json_of(directory_ + ".json");
    text = http_get(port_of(targets.at(static_cast<std::size_t>(rank_))), "/metrics");
  }
  [[nodiscard]] StopRequest stop_request() const override { return StopRequest::none; }
  nlohmann::json targets, shared;  ///< of the run; in the shared folder
  std::string text;

 private:
  std::string directory_;
  int rank_;
  std::int64_t step_;
};

/// On ranks that are threads; returns the hash.
std::string run_on(int ranks, const std::string& directory, std::vector<std::string> overrides,
                   std::vector<Scraper>* scrapers, Events& events) {
  const Registries registries = Registries::built_in();
  overrides.push_back("run_directory=" + directory);
  const JobFile job = config::load_text(kJob, "job.yaml", overrides, train::catalogue_of(registries), false);
  std::string hash;
  run_in_threads(ranks, [&](Communicator& communicator) {
    TrainerOptions options;
    if (communicator.rank() == 0) options.sink = &events;
    if (scrapers != nullptr) options.watcher = &scrapers->at(static_cast<std::size_t>(communicator.rank()));
    options.restarts = {{"death", 2}};
    const auto result = train_job(job, communicator, registries, options);
    if (communicator.rank() == 0) hash = result.parameters_sha256;
  });
  return hash;
}

// Ports are taken as available: the requested one may be in use.
constexpr const char* kServed = "telemetry.prometheus.port=19840";

}  // namespace

TEST(RunMetrics, EachRankServesItsOwnNumbers) {
  const Folder folder;
  const std::string directory = folder.path() + "/small";
  Events events, quiet_events;
  std::vector<Scraper> scrapers;
  for (int r = 0; r < 2; ++r) scrapers.emplace_back(directory, r, 10);
  const std::string hash = run_on(2, directory, {kServed, "balance=equal"}, &scrapers, events);
  EXPECT_EQ(hash, run_on(1, folder.path() + "/quiet", {}, nullptr, quiet_events));  // no bit differs
  for (int r = 0; r < 2; ++r) {
    const std::string& text = scrapers[static_cast<std::size_t>(r)].text;
    const std::string rank = "{rank=\"" + std::to_string(r) + "\"}";
    EXPECT_EQ(value_of(text, "lockstep_steps_total" + rank), 10) << text;
    EXPECT_GE(value_of(text, "lockstep_first_step_timestamp_seconds" + rank),
              value_of(text, "lockstep_start_timestamp_seconds" + rank));
    EXPECT_EQ(value_of(text, "lockstep_samples_total" + rank), 10 * 16 / 2);
    EXPECT_EQ(value_of(text, "lockstep_micro_batches" + rank), 2);
    EXPECT_EQ(value_of(text, "lockstep_share_ratio" + rank), 0.5);
    EXPECT_EQ(value_of(text, "lockstep_step_duration_seconds_count" + rank), 10);
    EXPECT_GT(value_of(text, "lockstep_micro_batch_compute_seconds_total" + rank), 0);
    EXPECT_GT(value_of(text, "lockstep_model_flops_total" + rank), 0);
    EXPECT_EQ(text.find("lockstep_tokens_total"), std::string::npos);  // images have no tokens
    EXPECT_EQ(text.find("lockstep_gpu"), std::string::npos);
  }
}

TEST(RunMetrics, Rank0TellsOfTheJob) {
  const Folder folder;
  Events events;
  std::vector<Scraper> scrapers = {{folder.path(), 0, 10}, {folder.path(), 1, 10}};
  (void)run_on(2, folder.path(), {kServed, "checkpoint.every=1 steps"}, &scrapers, events);
  const std::string &first = scrapers[0].text, &second = scrapers[1].text;
  EXPECT_EQ(value_of(first, "lockstep_step{rank=\"0\"}"), 10);
  EXPECT_EQ(value_of(first, "lockstep_planned_steps{rank=\"0\"}"), 12);
  EXPECT_EQ(value_of(first, "lockstep_world_size{rank=\"0\"}"), 2);
  EXPECT_EQ(value_of(first, "lockstep_epoch{rank=\"0\"}"), 2.5);
  EXPECT_EQ(value_of(first, "lockstep_evaluations_total{rank=\"0\"}"), 4);
  EXPECT_GE(value_of(first, "lockstep_validation_metric{rank=\"0\",metric=\"accuracy\"}"), 0);
  EXPECT_GE(value_of(first, "lockstep_checkpoints_total{rank=\"0\"}"), 1);
  EXPECT_GT(value_of(first, "lockstep_checkpoint_last_success_timestamp_seconds{rank=\"0\"}"), 1.6e9);
  EXPECT_EQ(value_of(first, "lockstep_restarts_total{rank=\"0\",reason=\"death\"}"), 2);
  EXPECT_EQ(value_of(first, "lockstep_restarts_total{rank=\"0\",reason=\"hang\"}"), 0);
  for (const char* name : {"lockstep_step{", "lockstep_loss{", "lockstep_restarts_total{"}) {
    EXPECT_EQ(second.find(name), std::string::npos) << name;
  }
}

// Joining `part` to a rank's series gives that of one part; sums over ranks are the job's.
TEST(RunMetrics, OfAModelInPartsEachRankTellsWhichItHasAndForWhomItWaits) {
  const Folder folder;
  Events events;
  std::vector<Scraper> scrapers;
  const std::string directory = folder.path() + "/parts";
  for (int r = 0; r < 2; ++r) scrapers.emplace_back(directory, r, 10);
  const std::string layers = "model.layers=[flatten,{linear: {features: 12}},relu,{linear: {features: 10}}]";
  (void)run_on(2, directory, {kServed, layers, "parallel.parts=2", "threads=2"}, &scrapers, events);
  const auto parts = events.of<events::Part>();
  ASSERT_EQ(parts.size(), 2U);
  const std::string& leader = scrapers[0].text;
  const std::string digest = leader.substr(leader.find(",digest=\"", leader.find("lockstep_job_info{")), 22);
  double flops = 0;
  for (int r = 0; r < 2; ++r) {
    const std::string &text = scrapers[static_cast<std::size_t>(r)].text, rank = "{rank=\"" + std::to_string(r) + "\"";
    const events::Part& part = parts[static_cast<std::size_t>(r)];
    EXPECT_EQ(part.part, r);
    EXPECT_EQ(part.parts, 2);
    EXPECT_EQ(part.ranks, std::to_string(r));
    EXPECT_EQ(value_of(text, "lockstep_part_info" + rank + ",part=\"" + part.ranks + "\",first=\"" + part.first +
                                 "\",last=\"" + part.last + "\"" + digest + "}"),
              1)
        << text;
    const auto seconds = [&](const std::string& activity) {
      return value_of(text, "lockstep_worker_seconds_total" + rank + ",activity=\"" + activity + "\"}");
    };
    EXPECT_GT(seconds("compute"), 0);
    EXPECT_EQ(seconds("activation_wait") > 0, r == 1);
    EXPECT_EQ(seconds("gradient_wait") > 0, r == 0);
    EXPECT_GT(seconds("idle"), 0);
    const double waited = seconds("activation_wait") + seconds("gradient_wait") + seconds("send_wait");
    const double phase = value_of(text, "lockstep_phase_seconds_total" + rank + ",phase=\"part_wait\"}");
    EXPECT_GT(phase, 0);
    EXPECT_LE(phase, waited / 2 * (1 + 1e-9)) << "the mean of two workers, as far as the main thread computed";
    EXPECT_EQ(value_of(text, "lockstep_samples_total" + rank), r == 1 ? 10 * 16 : 0);
    flops += value_of(text, "lockstep_model_flops_total" + rank);
  }
  Events of_whole;
  std::vector<Scraper> scraper = {{folder.path() + "/whole", 0, 10}};
  (void)run_on(1, folder.path() + "/whole", {kServed, layers}, &scraper, of_whole);
  EXPECT_EQ(of_whole.count<events::Part>(), 0);
  EXPECT_NE(scraper[0].text.find("lockstep_part_info{rank=\"0\",part=\"0\","), std::string::npos);
  EXPECT_EQ(value_of(scraper[0].text, "lockstep_model_flops_total{rank=\"0\"}"), flops);
  const auto end = events.last<events::End>();
  EXPECT_NEAR(end.phases.at("part_wait"), end.part_wait_seconds_by_rank->at(0), 1e-9);
}

// The initial scale is so high that gradients overflow.
TEST(RunMetrics, OfFloat16TheyTellTheScaleAndTheSkippedUpdates) {
  const Folder folder;
  Events events, quiet;
  (void)run(folder.path() + "/fp16", {kServed, "precision={fp16: {initial_scale: 16777216}}"}, events);
  const auto final_of = [&](const std::string& name) {
    return read_whole_file(folder.path() + "/" + name + "/metrics/final.prom").value_or("");
  };
  int skipped = 0;
  for (const auto& step : events.of<events::Step>()) {
    skipped += step.skipped.value() ? 1 : 0;
  }
  EXPECT_GT(skipped, 0);
  EXPECT_LT(skipped, 12);
  EXPECT_EQ(value_of(final_of("fp16"), "lockstep_updates_skipped_total{rank=\"0\""), skipped);
  EXPECT_EQ(value_of(final_of("fp16"), "lockstep_loss_scale{rank=\"0\""), events.last<events::Step>().loss_scale);
  (void)run(folder.path() + "/fp32", {kServed}, quiet);
  for (const char* name : {"lockstep_updates_skipped_total{", "lockstep_loss_scale{"}) {
    EXPECT_EQ(final_of("fp32").find(name), std::string::npos) << name;
  }
}

// Progress and report add up the step events, `balance report` has the table by rank, Prometheus the phase.
TEST(RunMetrics, WaitingForInputIsOneFigureEverywhere) {
  const Folder folder;
  Events events;
  std::vector<Scraper> scrapers = {{folder.path(), 0, 8}, {folder.path(), 1, 8}};
  (void)run_on(2, folder.path(), {kServed, "threads=2"}, &scrapers, events);
  double until_scraped = 0, all = 0;
  for (const auto& step : events.of<events::Step>()) {
    all += step.data_wait_seconds;
    if (step.step <= 8) until_scraped += step.data_wait_seconds;
  }
  EXPECT_GT(until_scraped, 0);  // the first batch is never ready in time
  const std::string phase = "lockstep_phase_seconds_total{rank=\"0\",phase=\"data_wait\"}";
  EXPECT_NEAR(value_of(scrapers[0].text, phase), until_scraped, 1e-6 * until_scraped);
  EXPECT_NEAR(events.last<events::End>().phases.at("data_wait"), all, 1e-6 * all);
  EXPECT_NEAR(events.last<events::End>().data_wait_seconds_by_rank->at(0), all, 1e-6 * all);
}

// They include the last checkpoint; `seconds` does not, since it ends with the last step.
TEST(RunMetrics, PhasesAddUpToTheTimeOfTheRun) {
  const Folder folder;
  Events events;
  const auto start = std::chrono::steady_clock::now();
  (void)run(folder.path(), {}, events);
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  double sum = 0;
  const auto phases = events.last<events::End>().phases;
  for (const auto& [name, seconds] : phases) {
    EXPECT_GE(seconds, 0) << name;
    sum += seconds;
  }
  EXPECT_TRUE(phases.contains("other"));
  EXPECT_GE(sum, events.last<events::End>().seconds);
  EXPECT_LE(sum, elapsed);
}

// Without clipping the norm is not computed; a 0 would look like a vanished gradient.
TEST(RunMetrics, TheGradientNormIsToldWhereItIsComputed) {
  const Folder folder;
  for (const bool clips : {false, true}) {
    Events events;
    std::vector<std::string> overrides = {kServed};
    if (clips) overrides.emplace_back("clip_norm=0.25");
    const std::string directory = folder.path() + (clips ? "/clips" : "/plain");
    (void)run(directory, overrides, events);
    for (const auto& step : events.of<events::Step>()) {
      EXPECT_EQ(step.gradient_norm.has_value(), clips);
      EXPECT_EQ(step.gradient_norm.value_or(0) > 0, clips);
    }
    const std::string text = read_whole_file(directory + "/metrics/final.prom").value_or("");
    EXPECT_EQ(value_of(text, "lockstep_gradient_norm{rank=\"0\"") > 0, clips) << text;
    EXPECT_EQ(text.find("\nlockstep_gradient_norm") != std::string::npos, clips) << text;
  }
}

TEST(RunMetrics, TheLastNumbersOfTheJobAreWrittenDown) {
  const Folder folder;
  Events events;
  (void)run(folder.path(), {kServed}, events);
  const std::string text = read_whole_file(folder.path() + "/metrics/final.prom").value_or("");
  EXPECT_EQ(text.find("lockstep_phase_seconds_total"), std::string::npos);  // per rank, not for the job
  EXPECT_EQ(value_of(text, "lockstep_step{rank=\"0\""), 12) << text;
  EXPECT_EQ(value_of(text, "lockstep_checkpoints_total{rank=\"0\""), 3);
}

TEST(RunMetrics, TargetsAreThereWhileItRuns) {
  const Folder folder;
  Events events;
  const std::string directory = folder.path() + "/small";
  std::vector<Scraper> scrapers = {{directory, 0, 3}, {directory, 1, 3}};
  (void)run_on(2, directory, {kServed, "name=mine", "telemetry.prometheus.targets=" + folder.path()}, &scrapers,
               events);
  const auto& targets = scrapers[0].targets;
  ASSERT_EQ(targets.size(), 2U);
  EXPECT_NE(port_of(targets[0]), port_of(targets[1]));
  EXPECT_EQ(targets[0].at("labels").at("job"), "mine");
  EXPECT_EQ(targets[0].at("labels").at("run"), "small");
  EXPECT_FALSE(targets[0].at("labels").at("host").get<std::string>().empty());
  EXPECT_EQ(scrapers[0].shared, scrapers[0].targets);
  EXPECT_TRUE(targets_of(directory).empty());  // after an orderly end there is nothing to scrape
  EXPECT_FALSE(fs::exists(folder.path() + "/small.json"));
}

TEST(RunMetrics, APortInUseIsToldAndReplaced) {
  const Folder folder;
  auto metrics = std::make_shared<telemetry::RankMetrics>();
  const telemetry::Exporter other({}, metrics, {});
  Events events;
  const std::string port = std::to_string(other.port());
  (void)run(folder.path(), {"telemetry.prometheus.port=" + port}, events);
  const std::string message = events.last<events::Warning>().message;
  EXPECT_EQ(message.find("rank 0: port " + port + " on "), 0U) << message;
  EXPECT_NE(message.find(" is in use; its metrics are served at port "), std::string::npos) << message;
  EXPECT_NE(message.find(", as " + folder.path() + "/metrics/targets.json says"), std::string::npos) << message;
}

TEST(RunMetrics, ALossThatIsNotFiniteIsWrittenDown) {
  const Folder folder;
  Events events;
  try {
    (void)run(folder.path(), {kServed, "optimizer=sgd", "learning_rate=1e38"}, events);
    FAIL() << "it did not diverge";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::diverged);
  }
  const std::string text = read_whole_file(folder.path() + "/metrics/final.prom").value_or("");
  EXPECT_EQ(value_of(text, "lockstep_nonfinite_total{rank=\"0\",what=\"loss\""), 1) << text;
  EXPECT_EQ(targets_of(folder.path()).size(), 1U);  // no orderly end: it should be visible that the rank is gone
}

TEST(RunMetrics, NothingIsThereWhereNobodyAsked) {
  const Folder folder;
  Events events;
  (void)run(folder.path(), {}, events);
  EXPECT_FALSE(fs::exists(folder.path() + "/metrics"));
}

TEST(RunMetrics, AnAddressOfAnotherHostEndsTheRun) {
  const Folder folder;
  Events events;
  try {
    (void)run(folder.path(), {"telemetry.prometheus.address=192.0.2.1"}, events);
    FAIL() << "it listens on an address that is not ours";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    EXPECT_NE(std::string(error.what()).find("expected an address of this host, found 192.0.2.1"), std::string::npos)
        << error.what();
  }
}

}  // namespace lockstep
