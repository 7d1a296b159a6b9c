#include "step/balance/pipeline.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>

#include "lockstep/error.hpp"

namespace lockstep::balance {

namespace {

/// A rank's work for one part: its micro-batches in order.
struct Line {
  int part = 0;
  std::vector<int> micro_batches;
  std::size_t begun = 0;    ///< forwards started so far
  std::size_t between = 0;  ///< micro-batches whose forward has started but whose backward has not ended
};

class Schedule {
 public:
  explicit Schedule(const PipelineSetup& setup)
      : setup_(setup),
        micro_batches_(setup.rank_of_micro_batch.front().size()),
        order_(order_of_micro_batches(setup.rank_of_micro_batch)),
        turn_(micro_batches_),
        lines_(setup.speeds.size()),
        waiting_(setup.parts.size()),
        read_by_(setup.parts.size()),
        backward_(setup.speeds.size()),
        free_(setup.speeds.size(), true) {
    result_.tasks.resize(setup.speeds.size());
    result_.busy.resize(setup.speeds.size());
    for (std::size_t p = 0; p < setup.parts.size(); ++p) {
      const auto& reads = setup.parts[p].reads;
      const Waiting forward{static_cast<int>(reads.size()), 0, reads.empty()};
      waiting_[p].assign(micro_batches_, {forward, {1, 0, false}});  // a backward needs what its own forward has kept
      for (std::size_t i = 0; i < reads.size(); ++i) {
        read_by_[reads[i]].push_back({static_cast<int>(p), i});
      }
      for (const int micro_batch : order_) {
        auto& lines = lines_[rank_of(p, static_cast<std::size_t>(micro_batch))];
        if (lines.empty() || lines.back().part != static_cast<int>(p)) lines.emplace_back().part = p;
        lines.back().micro_batches.push_back(micro_batch);
      }
    }
    for (std::size_t i = 0; i < micro_batches_; ++i) turn_[order_[i]] = i;
    for (std::size_t p = 0; p < setup.parts.size(); ++p) {
      for (auto& of_micro_batch : waiting_[p]) of_micro_batch.backward.missing += static_cast<int>(read_by_[p].size());
    }
  }

  // Events at the same time are handled together: a rank then chooses among all tasks that are ready.
  Pipeline run() {
    std::set<std::size_t> ranks;  // that may be able to begin a task
    for (std::size_t rank = 0; rank < free_.size(); ++rank) begin_next(rank, 0);
    while (!events_.empty()) {
      const double now = events_.top().at;
      ranks.clear();
      while (!events_.empty() && events_.top().at == now) {
        const Event event = events_.top();
        events_.pop();
        event.ready ? note_ready(event.task) : end(event);
        ranks.insert(rank_of(event));
      }
      for (const std::size_t rank : ranks) begin_next(rank, now);
    }
    for (const auto& lines : lines_) {
      for (const Line& line : lines) LOCKSTEP_CHECK(line.begun == line.micro_batches.size(), "every task has its turn");
    }
    return std::move(result_);
  }

 private:
  /// A task has ended or become ready.
  struct Event {
    double at = 0;
    Task task;
    bool ready = false;
    bool operator>(const Event& other) const {
      const auto key = [](const Event& e) {
        return std::tuple(e.at, e.task.micro_batch, e.task.part, e.task.forward, e.ready);
      };
      return key(*this) > key(other);
    }
  };
  /// A task that has not begun.
  struct Waiting {
    int missing = 0;  ///< number of tasks that make what it reads and have not begun
    double at = 0;    ///< earliest start, according to those that have begun
    bool ready = false;
  };
  struct WaitingMicroBatch {
    Waiting forward, backward;
  };
  struct Reader {
    int part = 0;
    std::size_t entry = 0;  ///< index in its `reads`
  };

  std::size_t rank_of(std::size_t part, std::size_t micro_batch) const {
    return setup_.rank_of_micro_batch[part][micro_batch];
  }
  std::size_t rank_of(const Event& event) const {
    return rank_of(static_cast<std::size_t>(event.task.part), static_cast<std::size_t>(event.task.micro_batch));
  }
  int turn_of(const Task& task) const { return turn_[task.micro_batch]; }
  Line& line(std::size_t rank, int part) {
    return *std::find_if(lines_[rank].begin(), lines_[rank].end(), [&](const Line& line) { return line.part == part; });
  }
  Waiting& waiting(const Task& task) {
    WaitingMicroBatch& micro_batch = waiting_[task.part][task.micro_batch];
    return task.forward ? micro_batch.forward : micro_batch.backward;
  }

  void begin_next(std::size_t rank, double now) {
    if (!free_[rank]) return;
    if (!backward_[rank].empty()) {
      const auto [turn, part] = *backward_[rank].begin();
      backward_[rank].erase(backward_[rank].begin());
      return begin(rank, {part, order_[turn], false}, now);
    }
    // The earliest micro-batch; within one micro-batch the earliest part, for which others wait longest.
    Task next{-1, 0, true};
    for (const Line& mine : lines_[rank]) {
      if (mine.begun == mine.micro_batches.size()) continue;
      if (setup_.in_flight > 0 && mine.between >= static_cast<std::size_t>(setup_.in_flight)) continue;
      const Task task{mine.part, mine.micro_batches[mine.begun], true};
      if (waiting(task).ready && (next.part < 0 || turn_of(task) < turn_of(next))) next = task;
    }
    if (next.part < 0) return;
    Line& mine = line(rank, next.part);
    ++mine.begun;
    ++mine.between;
    begin(rank, next, now);
  }

  void begin(std::size_t rank, const Task& task, double now) {
    const std::size_t part = task.part;
    const PartCost& cost = setup_.parts[part];
    const double seconds = (task.forward ? cost.forward : cost.backward) / setup_.speeds[rank], end = now + seconds;
    free_[rank] = false;
    result_.tasks[rank].push_back(task);
    result_.order.push_back(task);
    result_.busy[rank] += seconds;
    events_.push({end, task, false});
    if (task.forward) {
      for (const Reader& reader : read_by_[part]) {
        const Overlap overlap = overlap_of(reader.part, reader.entry);
        send(task, reader.part, reader.part, now, end - overlap.left / setup_.speeds[rank], overlap.before);
      }
    } else {
      for (std::size_t i = 0; i < cost.reads.size(); ++i) {
        const Overlap overlap = overlap_of(task.part, i);
        send(task, cost.reads[i], task.part, now, end - overlap.gradient_left / setup_.speeds[rank],
             overlap.before_gradient);
      }
    }
  }

  void end(const Event& event) {
    const std::size_t rank = rank_of(event);
    free_[rank] = true;
    result_.seconds = std::max(result_.seconds, event.at);
    if (event.task.forward) {
      begun({event.task.part, event.task.micro_batch, false}, event.at);
    } else {
      --line(rank, event.task.part).between;
    }
  }

  Overlap overlap_of(int reader, std::size_t entry) const {
    const auto& overlaps = setup_.parts[reader].overlaps;
    return overlaps.empty() ? Overlap{} : overlaps[entry];
  }

  // `task`, which begins `now`, makes at `made` what the same micro-batch's task of part `to` reads after `before`
  // seconds of its own compute. `reader`: which of the two parts reads in forward.
  void send(const Task& task, int to, int reader, double now, double made, double before) {
    const Task other{to, task.micro_batch, task.forward};
    const std::size_t rank = rank_of(static_cast<std::size_t>(to), static_cast<std::size_t>(task.micro_batch));
    const bool same = rank == rank_of(static_cast<std::size_t>(task.part), static_cast<std::size_t>(task.micro_batch));
    const double arrives = made + (same ? 0 : setup_.parts[reader].receive);
    begun(other, std::max(now, arrives - before / setup_.speeds[rank]));
  }

  // One of the tasks that make what `task` reads has begun; as far as that one is concerned, `task` can begin at `at`.
  void begun(const Task& task, double at) {
    Waiting& of = waiting(task);
    of.at = std::max(of.at, at);
    if (--of.missing == 0) events_.push({of.at, task, true});
  }

  void note_ready(const Task& task) {
    waiting(task).ready = true;
    if (task.forward) return;
    backward_[rank_of(static_cast<std::size_t>(task.part), static_cast<std::size_t>(task.micro_batch))].insert(
        {turn_of(task), task.part});
  }

  const PipelineSetup& setup_;
  std::size_t micro_batches_;
  std::vector<int> order_;                               // the micro-batches
  std::vector<int> turn_;                                // by micro-batch: its position in the order
  std::vector<std::vector<Line>> lines_;                 // by rank: of each part that it computes
  std::vector<std::vector<WaitingMicroBatch>> waiting_;  // by part and micro-batch
  std::vector<std::vector<Reader>> read_by_;             // by part
  std::vector<std::set<std::pair<int, int>>> backward_;  // by rank: (turn, part) of backwards that are ready
  std::vector<bool> free_;                               // by rank
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Pipeline result_;
};

}  // namespace

std::vector<int> order_of_micro_batches(const std::vector<std::vector<int>>& rank_of_micro_batch) {
  std::vector<int> order(rank_of_micro_batch.front().size());
  std::vector<double> progress(order.size());
  for (const std::vector<int>& ranks : rank_of_micro_batch) {
    std::map<int, int> all, before;  // by rank: its number of micro-batches
    for (const int rank : ranks) ++all[rank];
    if (all.size() == 1) continue;
    for (std::size_t v = 0; v < ranks.size(); ++v) {
      progress[v] +=
          (before[ranks[v]]++ + 0.5) / all[ranks[v]];  // the rank's progress when it computes this micro-batch
    }
  }
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return progress[a] < progress[b]; });
  return order;
}

Pipeline schedule(const PipelineSetup& setup) {
  LOCKSTEP_CHECK(!setup.parts.empty() && setup.rank_of_micro_batch.size() == setup.parts.size(), "ranks for each part");
  return Schedule(setup).run();
}

}  // namespace lockstep::balance
