// A custom balancer: each rank gets micro-batches in proportion to its speed in the previous step. The bits do not
// change.
#include <lockstep/micro_batch_balancer.hpp>

#include <algorithm>
#include <numeric>

#include "example.hpp"

namespace {

using namespace lockstep;

class BySpeed final : public MicroBatchBalancer {
 public:
  std::vector<int> balance(std::int64_t step, std::span<const RankLoad> ranks) override {
    if (step % 4 != 0) return {};  // no change
    std::vector<double> speeds;    // micro-batches per second
    int micro_batches = 0;
    for (const RankLoad& rank : ranks) {
      const double seconds_per_micro_batch = rank.seconds / std::max(rank.micro_batches, 1);
      speeds.push_back(seconds_per_micro_batch > 0 ? rank.workers / seconds_per_micro_batch : 1);
      micro_batches += rank.micro_batches;
    }
    const double all = std::accumulate(speeds.begin(), speeds.end(), 0.0);
    std::vector<int> counts;
    for (const double speed : speeds) counts.push_back(static_cast<int>(micro_batches * speed / all));
    counts.back() += micro_batches - std::accumulate(counts.begin(), counts.end(), 0);  // the remainder of rounding
    return counts;
  }
};

}  // namespace

int main() {
  return run_example([] {
    const Registries registries = Registries::built_in();
    const JobFile job = digits(registries);
    return same_bits([&](Communicator& communicator) {
      BySpeed balancer;  // asked on rank 0
      return train_job(job, communicator, registries, {.balancer = &balancer});
    });
  });
}
