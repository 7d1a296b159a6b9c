#include "tools/bench/scale.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/reduce/micro_batch_assignment.hpp"
#include "core/digest.hpp"
#include "core/median.hpp"
#include "core/spans.hpp"
#include "launch/processes.hpp"
#include "launch/rank_monitor.hpp"
#include "lockstep/error.hpp"
#include "step/balance/balancer.hpp"

namespace lockstep::bench {

namespace {

using std::chrono::milliseconds;

constexpr int kTurns = 50;
constexpr milliseconds kConnectPatience{10'000};
constexpr double kAllConnectSeconds = 60;

/// The ranks' ends of their control sockets; in a separate process, since one process may not have twice as many files
/// open.
class SimulatedRanks {
 public:
  SimulatedRanks(int ranks, std::string addresses, std::string token)
      : ranks_(ranks), addresses_(std::move(addresses)), token_(std::move(token)) {
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()) != 0) failed("make a pair of sockets");
    process_ = fork();
    if (process_ < 0) failed("start a process");
    if (process_ == 0) {
      close(ends_[0]);
      run();
      _exit(0);
    }
    close(ends_[1]);
  }
  SimulatedRanks(const SimulatedRanks&) = delete;
  SimulatedRanks& operator=(const SimulatedRanks&) = delete;
  ~SimulatedRanks() {
    close(ends_[0]);  // the process reads end of file and ends
    if (process_ > 0) (void)waitpid(process_, nullptr, 0);
  }

  /// Throws Error(infrastructure) if the process has ended: one of its ranks could not connect.
  void check() {
    if (waitpid(process_, nullptr, WNOHANG) == 0) return;
    process_ = -1;
    throw Error(
        ExitCode::infrastructure,
        fmt::format("bench scale: expected {} connections to this machine's own address, found that not all can "
                    "be made; see the limits of open files and of ports (net.ipv4.ip_local_port_range), or ask "
                    "for fewer ranks",
                    ranks_));
  }

  /// Becomes readable when the ranks are connected, and whenever a beat() is done.
  int done() const { return ends_[0]; }
  void await_done() const {
    std::array<char, 1> word{};
    if (read(ends_[0], word.data(), 1) != 1) failed("hear of the process that speaks for the ranks");
  }
  /// The next `beats` ranks, in turn, send a heartbeat each.
  void beat(int beats) const {
    if (send(ends_[0], &beats, sizeof beats, MSG_NOSIGNAL) != sizeof beats) failed("speak to the process of the ranks");
    await_done();
  }

 private:
  [[noreturn]] static void failed(const char* what) {
    throw Error(ExitCode::infrastructure, fmt::format("bench scale: cannot {}: {}", what, std::strerror(errno)));
  }

  static std::string line_from(launch::ControlSocket& socket) {
    std::vector<std::string> lines;
    for (bool open = socket.open(); open && lines.empty(); open = socket.read_lines(lines)) {
      pollfd readable{socket.descriptor(), POLLIN, 0};
      ::poll(&readable, 1, static_cast<int>(kConnectPatience.count()));
    }
    return lines.empty() ? "" : lines.front();
  }

  void run() {
    std::vector<launch::ControlSocket> sockets;
    for (int rank = 0; rank < ranks_; ++rank) {
      sockets.push_back(launch::ControlSocket::connect(addresses_, kConnectPatience));
      std::string challenge = line_from(sockets.back());
      (void)launch::take_word(challenge);
      sockets.back().queue(
          fmt::format("hello {} {} {} {} host-{}", hmac_sha256(token_, challenge), rank, ranks_, getpid(), rank));
      if (!sockets.back().flush()) return;
    }
    int beats = 0, next = 0, ticks = 0;
    while (send(ends_[1], "d", 1, MSG_NOSIGNAL) == 1 && read(ends_[1], &beats, sizeof beats) == sizeof beats) {
      for (; beats > 0; --beats, next = (next + 1) % ranks_) {
        auto& socket = sockets[next];
        socket.queue(fmt::format("beat {} {} 250 -1 compute of step {}", ticks, ticks / ranks_, ticks / ranks_));
        ++ticks;
        if (!socket.flush()) return;
      }
    }
  }

  int ranks_;
  std::string addresses_, token_;
  std::array<int, 2> ends_{};
  pid_t process_ = -1;
};

}  // namespace

SupervisorTurn measure_supervisor_turn(int ranks) {
  const launch::HangLimits limits;
  const std::string token = launch::random_hex();
  launch::RankMonitor monitor(token, ranks, limits, launch::listening_on_loopback(), [](const std::string&) {});
  SimulatedRanks simulated(ranks, monitor.addresses(), token);
  const auto start = Clock::now();
  while (!monitor.all_connected()) {
    monitor.hear(milliseconds(1000), simulated.done());
    simulated.check();
    if (seconds_since(start) > kAllConnectSeconds) {  // the supervisor ends connections that say nothing for long
      throw Error(ExitCode::infrastructure,
                  fmt::format("bench scale: expected {} ranks to connect to a supervisor within {} s, found fewer; ask "
                              "for fewer ranks, or wait until the machine is less busy",
                              ranks, kAllConnectSeconds));
    }
  }
  simulated.await_done();
  SupervisorTurn turn;
  turn.beat_seconds = launch::beat_period(ranks, limits);
  const double tick = std::chrono::duration<double>(launch::kTick).count();
  turn.beats = std::max(1, static_cast<int>(ranks * tick / turn.beat_seconds));
  std::vector<double> seconds;
  for (int i = 0; i < kTurns; ++i) {
    simulated.beat(turn.beats);
    const double begin = thread_seconds();
    monitor.hear(milliseconds(0), -1);
    monitor.ask(launch::Request::none);
    if (monitor.fault() || monitor.find_hang()) {
      throw Error(ExitCode::internal, "bench scale: a rank that lives was taken for a dead one");
    }
    seconds.push_back(thread_seconds() - begin);
  }
  turn.seconds = median(std::move(seconds));
  return turn;
}

namespace {

constexpr double kMicroBatchSeconds = 0.01;
constexpr int kSlowEvery = 8;  ///< one rank in so many takes half as long again for a micro-batch
constexpr int kMaxSteps = 100;

struct BalanceScale {
  std::vector<int> counts;  ///< after the decision
  double seconds = 0;       ///< CPU time of the decision
};

std::vector<balance::RankMeasure> measures_of(const std::vector<int>& counts) {
  std::vector<balance::RankMeasure> measures;
  double longest = 0;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    const double seconds = rank % kSlowEvery == 0 ? 1.5 * kMicroBatchSeconds : kMicroBatchSeconds;
    balance::RankMeasure& measure = measures.emplace_back();
    measure.micro_batches = counts[rank];
    measure.typical = seconds;
    measure.compute = measure.micro_batches * seconds;
    longest = std::max(longest, measure.compute);
  }
  for (auto& measure : measures) measure.reduce = longest - measure.compute;
  return measures;
}

// Feeds the real balancer steps of such ranks until it decides.
BalanceScale measure_decision(const ScaleOptions& options, int ranks) {
  const int micro_batches = ranks * options.micro_batches_a_rank;
  const auto counts = comm::equal_counts(micro_batches, ranks);
  balance::Balancer balancer({.micro_batches = micro_batches,
                              .workers = std::vector<int>(counts.size(), 1),
                              .max_micro_batches = std::vector<int>(counts.size(), micro_batches)},
                             counts);
  const auto measures = measures_of(counts);
  const double step_seconds = 1.5 * kMicroBatchSeconds * options.micro_batches_a_rank;
  BalanceScale result{counts, 0};
  for (int step = 0; step < kMaxSteps; ++step) {
    const double start = thread_seconds();
    const auto decision = balancer.observe(counts, measures, step_seconds);
    result.seconds = std::max(result.seconds, thread_seconds() - start);
    if (!decision) continue;
    result.counts = decision->counts;
    break;
  }
  return result;
}

}  // namespace

ScaleRow measure_scale(const ScaleOptions& options, int ranks) {
  ScaleRow row{.ranks = ranks, .reduce = {}, .decision_seconds = 0, .turn = measure_supervisor_turn(ranks)};
  const BalanceScale balance = measure_decision(options, ranks);
  row.decision_seconds = balance.seconds;
  ScaleLoad load;
  load.reduce = {.elements = static_cast<std::int64_t>(options.gradient_bytes / sizeof(float)),
                 .micro_batches_a_rank = options.micro_batches_a_rank};
  for (int rank = 0; rank < ranks; ++rank) load.topology.host_of.push_back(rank / options.ranks_a_host);
  const int hosts = load.topology.host_of.back() + 1;
  for (int host = 0; host < hosts; ++host) load.topology.host_names.push_back(fmt::format("host-{}", host));
  load.counts = comm::equal_counts(ranks * options.micro_batches_a_rank, ranks);
  load.moved = balance.counts;
  row.reduce = measure_reduce_scale(load);
  return row;
}

}  // namespace lockstep::bench
