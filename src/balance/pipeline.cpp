#include "balance/pipeline.hpp"

#include <algorithm>
#include <queue>
#include <set>
#include <tuple>

#include "lockstep/error.hpp"

namespace lockstep::balance {

namespace {

/// One part of a rank's work: its shards in the order of their numbers.
struct Line {
  std::vector<int> shards;
  std::size_t begun = 0;    ///< forwards that were started
  std::size_t between = 0;  ///< shards whose forward has started and whose backward has not ended
};

class Schedule {
 public:
  explicit Schedule(const PipelineSetup& setup)
      : setup_(setup),
        shards_(setup.rank_of_shard.front().size()),
        lines_(setup.parts.size() * setup.speeds.size()),
        missing_(setup.parts.size()),
        read_by_(setup.parts.size()),
        backward_(setup.speeds.size()),
        free_(setup.speeds.size(), true) {
    result_.tasks.resize(setup.speeds.size());
    result_.busy.resize(setup.speeds.size());
    for (std::size_t p = 0; p < setup.parts.size(); ++p) {
      const auto& reads = setup.parts[p].reads;
      missing_[p].assign(shards_, {static_cast<int>(reads.size()), 1});
      for (const int other : reads) read_by_[static_cast<std::size_t>(other)].push_back(static_cast<int>(p));
      for (std::size_t v = 0; v < shards_; ++v) line(rank_of(p, v), p).shards.push_back(static_cast<int>(v));
    }
    for (std::size_t p = 0; p < setup.parts.size(); ++p) {
      for (auto& [forward, backward] : missing_[p]) backward += static_cast<int>(read_by_[p].size());
    }
  }

  Pipeline run() {
    for (std::size_t rank = 0; rank < free_.size(); ++rank) begin_next(rank, 0);
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      if (event.arrival) {
        arrive(event);
      } else {
        end(event);
      }
      begin_next(rank_of(event), event.at);
    }
    for (const Line& line : lines_) LOCKSTEP_CHECK(line.begun == line.shards.size(), "every task has its turn");
    return std::move(result_);
  }

 private:
  /// A task has ended, or what another rank made for it has arrived.
  struct Event {
    double at = 0;
    Task task;
    bool arrival = false;
    bool operator>(const Event& other) const {
      const auto key = [](const Event& e) {
        return std::tuple(e.at, e.task.shard, e.task.part, e.task.forward, e.arrival);
      };
      return key(*this) > key(other);
    }
  };
  /// Of a shard of a part, before its tasks can start.
  struct Missing {
    int forward = 0, backward = 0;
  };

  [[nodiscard]] std::size_t rank_of(std::size_t part, std::size_t shard) const {
    return static_cast<std::size_t>(setup_.rank_of_shard[part][shard]);
  }
  [[nodiscard]] std::size_t rank_of(const Event& event) const {
    return rank_of(static_cast<std::size_t>(event.task.part), static_cast<std::size_t>(event.task.shard));
  }
  Line& line(std::size_t rank, std::size_t part) { return lines_[rank * setup_.parts.size() + part]; }
  Missing& missing(const Task& task) {
    return missing_[static_cast<std::size_t>(task.part)][static_cast<std::size_t>(task.shard)];
  }

  void begin_next(std::size_t rank, double now) {
    if (!free_[rank]) return;
    if (!backward_[rank].empty()) {
      const auto [shard, part] = *backward_[rank].begin();
      backward_[rank].erase(backward_[rank].begin());
      return begin(rank, {part, shard, false}, now);
    }
    // The lowest shard; of one shard the part that others wait for longest.
    Task next{-1, 0, true};
    for (std::size_t p = 0; p < setup_.parts.size(); ++p) {
      const Line& mine = line(rank, p);
      if (mine.begun == mine.shards.size()) continue;
      if (setup_.in_flight > 0 && mine.between >= static_cast<std::size_t>(setup_.in_flight)) continue;
      const Task task{static_cast<int>(p), mine.shards[mine.begun], true};
      if (missing(task).forward == 0 && (next.part < 0 || task.shard < next.shard)) next = task;
    }
    if (next.part < 0) return;
    Line& mine = line(rank, static_cast<std::size_t>(next.part));
    ++mine.begun;
    ++mine.between;
    begin(rank, next, now);
  }

  void begin(std::size_t rank, const Task& task, double now) {
    const PartCost& cost = setup_.parts[static_cast<std::size_t>(task.part)];
    const double seconds = (task.forward ? cost.forward : cost.backward) / setup_.speeds[rank];
    free_[rank] = false;
    result_.tasks[rank].push_back(task);
    result_.busy[rank] += seconds;
    events_.push({now + seconds, task, false});
  }

  void end(const Event& event) {
    const auto part = static_cast<std::size_t>(event.task.part);
    const std::size_t rank = rank_of(event);
    free_[rank] = true;
    result_.seconds = std::max(result_.seconds, event.at);
    if (event.task.forward) {
      for (const int reader : read_by_[part]) send(event, reader, setup_.parts[static_cast<std::size_t>(reader)]);
      arrive({event.at, {event.task.part, event.task.shard, false}, true});  // its own backward needs what it has kept
    } else {
      --line(rank, part).between;
      for (const int other : setup_.parts[part].reads) send(event, other, setup_.parts[part]);
    }
  }

  // `link`: of the part that reads, either way.
  void send(const Event& event, int to, const PartCost& link) {
    const Task task{to, event.task.shard, event.task.forward};
    const bool same = rank_of(event) == rank_of(static_cast<std::size_t>(to), static_cast<std::size_t>(task.shard));
    events_.push({event.at + (same ? 0 : link.receive), task, true});
  }

  void arrive(const Event& event) {
    Missing& of = missing(event.task);
    if (event.task.forward) {
      --of.forward;
    } else if (--of.backward == 0) {
      backward_[rank_of(event)].insert({event.task.shard, event.task.part});
    }
  }

  const PipelineSetup& setup_;
  std::size_t shards_;
  std::vector<Line> lines_;                              // by rank and part
  std::vector<std::vector<Missing>> missing_;            // by part and shard
  std::vector<std::vector<int>> read_by_;                // by part
  std::vector<std::set<std::pair<int, int>>> backward_;  // by rank: shard and part of what is ready
  std::vector<bool> free_;                               // by rank
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Pipeline result_;
};

}  // namespace

Pipeline schedule(const PipelineSetup& setup) {
  LOCKSTEP_CHECK(!setup.parts.empty() && setup.rank_of_shard.size() == setup.parts.size(), "ranks for each part");
  return Schedule(setup).run();
}

}  // namespace lockstep::balance
