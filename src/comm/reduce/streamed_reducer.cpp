// The reducer for gradients that ranks divide: scattered buckets are added micro-batch by micro-batch
// (StreamedReduceScatter), the others and the scalars as usual (CpuAllReduce).
#include <utility>

#include "comm/reduce/rank_reducer.hpp"
#include "comm/reduce/streamed_reduce_scatter.hpp"

namespace lockstep::comm {

namespace {

/// Divides buckets into streamed and other ones, and remembers where each went.
struct Ways {
  GradientBuckets whole, streamed;
  struct Place {
    bool is_streamed = false;
    int number = 0;
  };
  std::vector<Place> places;

  explicit Ways(const GradientBuckets& buckets)
      : whole{.buckets = {}, .micro_batches = buckets.micro_batches}, streamed(whole) {
    whole.spread_owners = streamed.spread_owners = buckets.spread_owners;
    for (int b = 0; b < buckets.count(); ++b) {
      GradientBuckets& way = buckets.at(b).scattered ? streamed : whole;
      places.push_back({buckets.at(b).scattered, way.count()});
      GradientBuckets::Bucket& bucket = way.buckets.emplace_back(buckets.at(b));
      if (bucket.turn < 0) bucket.turn = b;  // keeps the owners that it has among all buckets
    }
  }
};

class StreamedReducer final : public GradientReducer {
 public:
  StreamedReducer(Communicator& communicator, Ways ways, const ReducerOptions& options)
      : places_(std::move(ways.places)),
        streamed_(communicator, std::move(ways.streamed), options, ways.whole.count()),
        whole_(make_cpu_all_reduce(communicator, std::move(ways.whole), options)) {}

  GradientBuffer buffer(int micro_batch, int bucket) override {
    const auto [is_streamed, number] = place(bucket);
    return is_streamed ? streamed_.buffer(micro_batch, number) : whole_->buffer(micro_batch, number);
  }
  void ready(int micro_batch, int bucket) override {
    const auto [is_streamed, number] = place(bucket);
    is_streamed ? streamed_.ready(micro_batch, number) : whole_->ready(micro_batch, number);
  }
  void begin_step(std::uint64_t step, const MicroBatchAssignment& assignment) override {
    whole_->begin_step(step, assignment);
    streamed_.begin_step(step, assignment);
  }
  void finish() override {
    streamed_.finish();
    whole_->finish();
  }
  [[nodiscard]] std::span<const float> reduced(int bucket) const override {
    const auto [is_streamed, number] = place(bucket);
    return is_streamed ? streamed_.reduced(number) : whole_->reduced(number);
  }
  [[nodiscard]] Scalars scalars(const OwnScalars& own) override { return whole_->scalars(own); }
  [[nodiscard]] ReducerStatistics statistics() const override {
    ReducerStatistics all = whole_->statistics();
    const ReducerStatistics streamed = streamed_.statistics();
    all.shared_memory_bytes += streamed.shared_memory_bytes;
    all.network_bytes += streamed.network_bytes;
    all.partials_sent += streamed.partials_sent;
    all.seconds_waited += streamed.seconds_waited;
    all.seconds_reducing += streamed.seconds_reducing;
    all.peak_elements += streamed.peak_elements;
    return all;
  }
  void trace(TraceRecorder* recorder) override {
    streamed_.trace(recorder);
    whole_->trace(recorder);
  }

 private:
  [[nodiscard]] Ways::Place place(int bucket) const { return places_[static_cast<std::size_t>(bucket)]; }

  std::vector<Ways::Place> places_;
  StreamedReduceScatter streamed_;
  std::unique_ptr<GradientReducer> whole_;
};

}  // namespace

std::unique_ptr<GradientReducer> make_streamed_reducer(Communicator& communicator, const GradientBuckets& buckets,
                                                       const ReducerOptions& options) {
  Ways ways(buckets);
  if (ways.streamed.count() == 0) return make_cpu_all_reduce(communicator, buckets, options);
  return std::make_unique<StreamedReducer>(communicator, std::move(ways), options);
}

}  // namespace lockstep::comm
