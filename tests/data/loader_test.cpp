#include "data/loader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "core/digest.hpp"
#include "data/digits.hpp"
#include "data/fake_data.hpp"
#include "data/prefetch.hpp"

namespace lockstep::data {

namespace {

Pipeline pipeline_for(const DataSet& set, std::vector<AugmentOptions> steps = {}) {
  return {
      set.info().features, {.steps = std::move(steps), .mean = {}, .stddev = {}, .seed = 3}, built_in_augmentations()};
}

LoaderOptions small_options() {
  LoaderOptions options;
  options.batch = 24;
  options.micro_batches = 6;
  options.seed = 3;
  options.last_step = 12;
  options.cache_bytes = 1 << 20;
  return options;
}

std::string digest_of(const Batch& batch) {
  Sha256 sha;
  for (const NamedTensor& part : batch.tensors) sha.add({part.tensor.bytes(), part.tensor.spec().bytes()});
  return sha.hex();
}

/// Digests of every (step, micro-batch), requested by `callers` threads.
std::map<std::pair<std::uint64_t, int>, std::string> run(const DataSet& set, const LoaderOptions& options,
                                                         int callers = 1) {
  Loader loader(set, pipeline_for(set, {{"flip", {}, {}}, {"crop", {}, {}}}), options);
  loader.assign(0, {0, 1, 2, 3, 4, 5});
  std::map<std::pair<std::uint64_t, int>, std::string> digests;
  std::mutex mutex;
  for (std::uint64_t step = 0; step < options.last_step; ++step) {
    std::vector<std::thread> threads;
    for (int caller = 0; caller < callers; ++caller) {
      threads.emplace_back([&, caller] {
        for (int micro_batch = caller; micro_batch < options.micro_batches; micro_batch += callers) {
          const std::string digest = digest_of(loader.get(step, micro_batch));
          loader.release(step, micro_batch);
          const std::lock_guard lock(mutex);
          digests[{step, micro_batch}] = digest;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  return digests;
}

std::vector<std::int32_t> labels(const Batch& batch) {
  const auto values = batch.tensors.back().tensor.as<std::int32_t>();
  return {values.begin(), values.end()};
}

}  // namespace

TEST(Loader, BatchesDoNotDependOnThreadsDepthOrCache) {
  const auto set = make_digits(100);
  LoaderOptions options = small_options();
  options.threads = 1;
  const auto expected = run(*set, options);
  EXPECT_EQ(expected.size(), 72U);
  for (const int threads : {1, 2, 4}) {
    for (const int depth : {1, 3, 20}) {
      options.threads = threads;
      options.depth = depth;
      options.cache_bytes = depth == 3 ? 0 : 1 << 20;
      EXPECT_EQ(run(*set, options, threads), expected) << threads << " threads, depth " << depth;
    }
  }
}

TEST(Loader, BatchHoldsTheSamplersIds) {
  const CountingSet set(1000);
  const LoaderOptions options = small_options();
  Loader loader(set, pipeline_for(set), options);
  loader.assign(0, {4, 1});
  const auto order = make_training_order(1000, 24, 6, 3);
  std::vector<std::int64_t> ids(4);
  for (std::uint64_t step = 0; step < 12; ++step) {
    for (const int micro_batch : {1, 4}) {
      order->ids(step, micro_batch, ids);
      const Batch& batch = loader.get(step, micro_batch);
      EXPECT_EQ(batch.ids, ids);
      EXPECT_EQ(batch.valid, 4);
      EXPECT_EQ(labels(batch), (std::vector<std::int32_t>(ids.begin(), ids.end())));
      EXPECT_EQ(batch.tensors[0].tensor.shape(), (Shape{4, 1, 2, 1}));
      EXPECT_FLOAT_EQ(batch.tensors[0].tensor.as<float>()[0], static_cast<float>(ids[0] & 255) / 255);
      loader.release(step, micro_batch);
    }
  }
}

TEST(Loader, ReassigningChangesNoBatch) {
  const auto set = make_digits(100);
  LoaderOptions options = small_options();
  options.threads = 2;
  options.depth = 16;
  const auto expected = run(*set, options);
  Loader loader(*set, pipeline_for(*set, {{"flip", {}, {}}, {"crop", {}, {}}}), options);
  std::vector<int> micro_batches{0, 1, 2};
  loader.assign(0, micro_batches);
  for (std::uint64_t step = 0; step < options.last_step; ++step) {
    for (const int micro_batch : micro_batches) {
      EXPECT_EQ(digest_of(loader.get(step, micro_batch)), expected.at({step, micro_batch}));
      loader.release(step, micro_batch);
    }
    micro_batches = {static_cast<int>(step % 6), static_cast<int>((step + 2) % 6)};
    if (step % 3 == 2) micro_batches.clear();
    loader.assign(step + 1, micro_batches);
  }
}

TEST(Loader, MicroBatchesThatNobodyAssignedAreMadeByTheCaller) {
  const CountingSet set(100);
  Loader loader(set, pipeline_for(set), small_options());
  loader.assign(0, {0});
  EXPECT_EQ(loader.get(3, 5).ids.size(), 4U);
  loader.release(3, 5);
  EXPECT_GE(loader.counters().made_by_caller, 1);
}

TEST(Loader, EvaluationTakesAllSamplesOnceAndPadsTheLastMicroBatch) {
  const CountingSet set(10);
  LoaderOptions options = small_options();
  options.training = false;
  options.last_step = 2;
  Loader loader(set, pipeline_for(set), options);
  loader.assign(0, {0, 1, 2});
  for (std::uint64_t round = 0; round < 2; ++round) {
    std::vector<std::int32_t> seen;
    for (int micro_batch = 0; micro_batch < evaluation_micro_batches(10, 4); ++micro_batch) {
      const Batch& batch = loader.get(round, micro_batch);
      const auto all = labels(batch);
      seen.insert(seen.end(), all.begin(), all.begin() + batch.valid);
      if (micro_batch == 2) {
        EXPECT_EQ(all, (std::vector<std::int32_t>{8, 9, 9, 9}));
      }
      loader.release(round, micro_batch);
    }
    EXPECT_EQ(seen, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  }
}

TEST(Loader, TextHasOneVariantAnEpochAndTheFixedFormInEvaluation) {
  const VariantSet set(48);  // two steps per epoch
  LoaderOptions options = small_options();
  Loader training(set, pipeline_for(set), options);
  std::vector<std::int32_t> variants;
  for (std::uint64_t step = 0; step < 4; ++step) {
    variants.push_back(labels(training.get(step, 0))[0]);
    EXPECT_EQ(labels(training.get(step, 5)), std::vector<std::int32_t>(4, variants.back()));
    training.release(step, 0);
    training.release(step, 5);
  }
  EXPECT_EQ(variants[0], variants[1]);
  EXPECT_NE(variants[1], variants[2]);
  EXPECT_EQ(variants[2], variants[3]);
  options.training = false;
  Loader evaluation(set, pipeline_for(set), options);
  EXPECT_EQ(labels(evaluation.get(7, 3)), std::vector<std::int32_t>(4, 0));
}

TEST(Loader, AWorkerGetsTheInputsByName) {
  const CountingSet set(24);
  LoaderOptions options = small_options();
  options.inputs = {"label", "image"};
  options.recorder = std::make_shared<FlightRecorder>();
  Loader loader(set, pipeline_for(set), options);
  MicroBatchInputs inputs;
  loader.get(0, 2, inputs);
  LoaderOptions all = small_options();
  Loader other(set, pipeline_for(set), all);
  const Batch& batch = other.get(0, 2);
  ASSERT_EQ(inputs.tensors.size(), 2U);
  EXPECT_EQ(inputs.valid, 4);
  EXPECT_EQ(std::memcmp(inputs.tensors[0], batch.tensors[1].tensor.bytes(), batch.tensors[1].tensor.spec().bytes()), 0);
  EXPECT_EQ(std::memcmp(inputs.tensors[1], batch.tensors[0].tensor.bytes(), batch.tensors[0].tensor.spec().bytes()), 0);
  EXPECT_EQ(options.recorder->ticks(), 0U);
  loader.release(0, 2);
  EXPECT_EQ(options.recorder->ticks(), 1U);
}

TEST(Loader, RefusesAnInputThatNothingFeeds) {
  const CountingSet set(24);
  LoaderOptions options = small_options();
  options.inputs = {"image", "sound"};
  try {
    const Loader loader(set, pipeline_for(set), options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "job.data: nothing feeds the model's input 'sound'");
    EXPECT_EQ(error.code(), ExitCode::configuration);
  }
}

TEST(Loader, AnErrorReachesTheCallerAndOthersGoOn) {
  CountingSet set(24);
  set.bad = 7;
  Loader loader(set, pipeline_for(set), small_options());
  loader.assign(0, {0, 1, 2, 3, 4, 5});
  int failures = 0;
  for (int micro_batch = 0; micro_batch < 6; ++micro_batch) {
    try {
      static_cast<void>(loader.get(0, micro_batch));
      loader.release(0, micro_batch);
    } catch (const Error& error) {
      ++failures;
      EXPECT_STREQ(error.what(), "sample 7 is bad");
      EXPECT_EQ(error.code(), ExitCode::data);
    }
  }
  EXPECT_EQ(failures, 1);
}

TEST(Loader, CacheStaysWithinItsBudgetAndSavesReads) {
  const CountingSet set(24);
  constexpr int kTable = 24 * 8, kSample = 3 * 8 + 2 + 4;  // three dimensions, two pixels, a label
  for (const int kept : {0, 1, 10, 24}) {
    LoaderOptions options = small_options();
    options.cache_bytes = kTable + kept * kSample + kSample / 2;
    set.reads = 0;
    Loader loader(set, pipeline_for(set), options);
    for (std::uint64_t step = 0; step < 5; ++step) {
      for (int micro_batch = 0; micro_batch < 6; ++micro_batch) {
        EXPECT_EQ(labels(loader.get(step, micro_batch)).size(), 4U);
        loader.release(step, micro_batch);
      }
    }
    EXPECT_EQ(loader.counters().cache_bytes, kTable + kept * kSample);
    EXPECT_EQ(set.reads, 24 + 4 * (24 - kept));
  }
}

TEST(Loader, BuffersAreRecycled) {
  const CountingSet set(240);
  LoaderOptions options = small_options();
  options.depth = 3;
  options.last_step = 10;
  Loader loader(set, pipeline_for(set), options);
  loader.assign(0, {0, 1, 2, 3, 4, 5});
  for (std::uint64_t step = 0; step < 10; ++step) {
    for (int micro_batch = 0; micro_batch < 6; ++micro_batch) {
      static_cast<void>(loader.get(step, micro_batch));
      loader.release(step, micro_batch);
    }
  }
  const std::int64_t one = 4 * 2 * 4 + 4 * 4;
  EXPECT_LE(loader.counters().buffer_bytes, 5 * one);  // three prefetched, one held, one being made by the caller
}

TEST(Loader, EndsWhileItsThreadsAreBusy) {
  CountingSet set(240);
  set.delay = std::chrono::microseconds(200);
  LoaderOptions options = small_options();
  options.threads = 3;
  Loader loader(set, pipeline_for(set), options);
  loader.assign(0, {0, 1, 2, 3, 4, 5});
  static_cast<void>(loader.get(0, 5));
  EXPECT_GT(loader.wait_seconds(), 0);
}

TEST(PrefetchTuner, GrowsWhileTheStepWaits) {
  PrefetchTuner tuner({.threads = 0, .depth = 0, .max_threads = 3, .max_depth = 32});
  EXPECT_EQ(tuner.threads(), 1);
  EXPECT_EQ(tuner.depth(), 4);
  double now = 0;
  for (int i = 0; i < 200; ++i) tuner.record(now += 0.01, 0.005);
  EXPECT_EQ(tuner.threads(), 3);
  EXPECT_EQ(tuner.depth(), 32);
}

TEST(PrefetchTuner, GivesAThreadBackAndLearnsWhenItIsNeeded) {
  PrefetchTuner tuner({.threads = 0, .depth = 0, .max_threads = 3, .max_depth = 32});
  double now = 0;
  const auto windows = [&](int count, double waited) {
    for (int i = 0; i < 16 * count; ++i) tuner.record(now += 0.01, waited);
  };
  windows(10, 0.005);
  EXPECT_EQ(tuner.threads(), 3);
  windows(16, 0);
  EXPECT_EQ(tuner.threads(), 2);
  windows(1, 0.005);  // waiting is back at once: three threads are needed
  EXPECT_EQ(tuner.threads(), 3);
  windows(100, 0);
  EXPECT_EQ(tuner.threads(), 3);
}

TEST(PrefetchTuner, KeepsWhatWasFixed) {
  PrefetchTuner tuner({.threads = 2, .depth = 5, .max_threads = 8, .max_depth = 32});
  double now = 0;
  for (int i = 0; i < 200; ++i) tuner.record(now += 0.01, 0.005);
  EXPECT_EQ(tuner.threads(), 2);
  EXPECT_EQ(tuner.depth(), 5);
}

}  // namespace lockstep::data
