#include "comm/reduce/gpu_rounds.hpp"

#include <map>
#include <utility>

namespace lockstep::comm {

namespace {

using Location = GpuRounds::Location;
using What = PlannedMessage::What;

class RoundsOfBucket {
 public:
  RoundsOfBucket(const ReducePlan& plan, const Hosts& hosts, int bucket) : plan_(plan), of_(plan.buckets[bucket]) {
    receive_all(planned_receives(plan, hosts, bucket));
    for (const int number : of_.led) {
      for (const HostSum& sum : plan.sums.host_sums) gather(number, sum);
    }
    send_all(planned_sends(plan, hosts, bucket));
    if (of_.own >= 0) add_own();
  }
  [[nodiscard]] GpuRounds take() { return std::move(rounds_); }

 private:
  // By slice: the partial sums (rank, root) that this rank has received, and its host's sums.
  using Sums = std::map<std::pair<int, int>, Location>;

  void receive_all(const std::vector<PlannedMessage>& messages) {
    for (const PlannedMessage& message : messages) {
      if (message.what == What::finished) continue;  // all_gather() does that
      const std::int64_t count = of_.at(message.slice).size;
      const Location location{-1, std::exchange(rounds_.receive_elements, rounds_.receive_elements + count)};
      GpuRounds::Round& round = message.what == What::partial ? rounds_.inside : rounds_.between;
      round.receives.push_back({message.peer, location, count});
      if (message.what == What::partial) {
        partials_[message.slice][{message.peer, message.number}] = location;
      } else {
        others_.push_back(location);
      }
    }
  }

  void send_all(const std::vector<PlannedMessage>& messages) {
    std::size_t gathered = 0;
    for (const PlannedMessage& message : messages) {
      const PlannedSlice& slice = of_.at(message.slice);
      if (message.what == What::partial) {
        rounds_.inside.sends.push_back({message.peer, {message.number, slice.first}, slice.size});
      } else if (message.what == What::host_sum) {
        rounds_.between.sends.push_back({message.peer, result_of(rounds_.gathered[gathered++]), slice.size});
      }
    }
  }

  [[nodiscard]] Location location(const Partial& part, int slice) {
    return part.rank == plan_.rank ? Location{part.root, of_.at(slice).first}
                                   : partials_.at(slice).at({part.rank, part.root});
  }

  void gather(int slice, const HostSum& sum) {
    GpuRounds::Sum& gathered = rounds_.gathered.emplace_back();
    for (const Partial& part : sum.parts) gathered.parts.push_back(location(part, slice));
    gathered.additions = sum.additions;
    gathered.count = of_.at(slice).size;
  }

  void add_own() {
    for (const Partial& part : plan_.sums.partials) rounds_.own.parts.push_back(location(part, of_.own));
    rounds_.own.parts.insert(rounds_.own.parts.end(), others_.begin(), others_.end());
    rounds_.own.additions = plan_.sums.additions;
    rounds_.own.count = of_.own_size();
    rounds_.first = of_.at(of_.own).first;
  }

  const ReducePlan& plan_;
  const BucketPlan& of_;
  std::map<int, Sums> partials_;
  std::vector<Location> others_;
  GpuRounds rounds_;
};

}  // namespace

Location result_of(const GpuRounds::Sum& sum) {
  std::vector<Location> results = sum.parts;
  for (const Addition& addition : sum.additions) results.push_back(results[addition.left]);
  return results.back();
}

GpuRounds gpu_rounds(const ReducePlan& plan, const Hosts& hosts, int bucket) {
  return RoundsOfBucket(plan, hosts, bucket).take();
}

void add_in_order(device::Gpu& gpu, device::Gpu::Stream stream, std::vector<float*> operands,
                  std::span<const Addition> additions, std::int64_t count, float* out) {
  for (const Addition& addition : additions) {
    float* left = operands[addition.left];
    const bool last = &addition == &additions.back();
    float* to = last && out != nullptr ? out : left;  // `left` is not needed again: each part is added once
    gpu.add(stream, left, operands[addition.right], to, count);
    operands.push_back(to);
  }
  if (!additions.empty() || out == nullptr) return;
  gpu.copy(stream, reinterpret_cast<std::byte*>(out), reinterpret_cast<const std::byte*>(operands[0]),
           count * sizeof(float));
}

void add_slices(device::Gpu& gpu, device::Gpu::Stream stream, const GpuRounds::Sum& sum, const SliceMemory& memory,
                float* out) {
  if (sum.count == 0) return;
  std::vector<float*> operands;
  for (const auto& part : sum.parts) operands.push_back(memory.at(part));
  add_in_order(gpu, stream, std::move(operands), sum.additions, sum.count, out);
}

}  // namespace lockstep::comm
