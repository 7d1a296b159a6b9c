#include "launch/rank_agent.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <utility>

#include "comm/transport/topology.hpp"
#include "core/digest.hpp"
#include "core/numbers.hpp"
#include "core/ran_time.hpp"
#include "core/say.hpp"
#include "core/stop_count.hpp"
#include "core/unfit_hosts.hpp"
#include "launch/processes.hpp"
#include "launch/secrets.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/event_json.hpp"

namespace lockstep::launch {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kConnectPatience{5'000};
constexpr milliseconds kLastWordPatience{2'000};
constexpr std::chrono::seconds kFailedPatience{15};  ///< time for the supervisor to end a rank that has failed
constexpr std::size_t kDurations = 31;
constexpr int kLookAlone = 100;          ///< milliseconds
constexpr double kStepsOfPatience = 20;  ///< as the supervisor's

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int rank_of_environment() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK"}) {
    if (const auto value = variable(name); !value.empty()) return std::atoi(value.c_str());
  }
  return 0;
}

// Redirects the output of the program and of its libraries.
void log_to(const std::string& folder, int rank) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::string path = fmt::format("{}/rank-{}.log", folder, rank);
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return;  // a host that cannot write there reports through mpirun
  std::fflush(stdout);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  close(file);
}

}  // namespace

std::map<std::string, double> restarts_of_launch() {
  std::map<std::string, double> restarts;
  std::istringstream words(variable(kRestartsVariable));
  for (std::string word; std::getline(words, word, ',');) {
    const auto cut = word.find('=');
    if (cut != std::string::npos) restarts[word.substr(0, cut)] = number_from<double>(word.substr(cut + 1)).value_or(0);
  }
  return restarts;
}

class RankAgent::EventSink final : public events::Sink {
 public:
  explicit EventSink(RankAgent& agent) : agent_(agent) {}
  void event(const events::Event& event) override { agent_.say("event " + telemetry::event_line(event)); }

 private:
  RankAgent& agent_;
};

std::unique_ptr<RankAgent> RankAgent::from_environment() {
  const std::string addresses = variable(kSupervisorVariable), folder = variable(kFolderVariable);
  if (addresses.empty()) return nullptr;
  const int rank = rank_of_environment();
  log_to(folder, rank);
  ControlSocket socket = ControlSocket::connect(addresses, kConnectPatience);
  if (!socket.open()) {
    throw Error(ExitCode::infrastructure,
                fmt::format("rank {} on host {}: cannot reach the supervisor at {}; let this host connect to it, or "
                            "start lockstep launch on a host that all others reach",
                            rank, comm::host_identity(), addresses));
  }
  const std::string token = variable(kSecretVariable);
  if (token.empty()) {
    throw Error(ExitCode::infrastructure,
                fmt::format("rank {} on host {}: the secrets that the launch has put into /dev/shm are gone; see that "
                            "nothing removes files of a launch that goes on there",
                            rank, comm::host_identity()));
  }
  return std::unique_ptr<RankAgent>(new RankAgent(std::move(socket), rank, folder, token));
}

RankAgent::RankAgent(ControlSocket socket, int rank, std::string dumps, std::string token)
    : socket_(std::move(socket)),
      rank_(rank),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      dumps_(std::move(dumps)),
      token_(std::move(token)),
      step_ended_(Clock::now()) {
  thread_ = std::thread([this] { run(); });
}

RankAgent::~RankAgent() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  say("");
  thread_.join();
  close(wake_);
}

void RankAgent::watch(std::shared_ptr<FlightRecorder> recorder) {
  const std::lock_guard lock(mutex_);
  recorder_ = std::move(recorder);
}

std::string RankAgent::launch() const {
  return variable(kMarkVariable);
}

void RankAgent::step_done(std::int64_t step) {
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  if (step_ >= 0) {
    if (durations_.size() < kDurations) durations_.push_back(0);
    durations_[durations_count_++ % kDurations] = std::chrono::duration<double>(now - step_ended_).count();
  }
  step_ended_ = now;
  step_ = step;
}

std::int64_t RankAgent::median_milliseconds() const {
  const std::lock_guard lock(mutex_);
  if (durations_.empty()) return 0;
  auto sorted = durations_;
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2] * 1000;
}

std::unique_ptr<events::Sink> RankAgent::make_sink() {
  return std::make_unique<EventSink>(*this);
}

void RankAgent::say(const std::string& line) {
  {
    const std::lock_guard lock(mutex_);
    if (!line.empty()) to_say_.push_back(line);
    said_all_ = false;
  }
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
}

void RankAgent::fail(const std::exception& error) {
  dump();
  if (const auto* const unfit = dynamic_cast<const UnfitHosts*>(&error)) {
    for (const auto& host : unfit->hosts()) say("unfit " + host);
  }
  say(fmt::format("error {} {}", exit_code(error), packed_lines(error.what())));
  if (!alone_) std::this_thread::sleep_for(kFailedPatience);
}

void RankAgent::leave(int code) {
  drop_secrets(launch());
  say(fmt::format("bye {}", code));
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kLastWordPatience, [&] { return said_all_; });
}

void RankAgent::dump() {
  std::shared_ptr<FlightRecorder> recorder;
  {
    const std::lock_guard lock(mutex_);
    recorder = recorder_;
  }
  if (recorder) say("dumped " + dump_flight(*recorder, dumps_, rank_, comm::host_identity()));
}

void RankAgent::send_beat() {
  const std::int64_t median = median_milliseconds();
  const std::lock_guard lock(mutex_);
  const auto peer = recorder_ ? recorder_->activity().peer : -1;
  socket_.queue(fmt::format("beat {} {} {} {} {}", recorder_ ? recorder_->ticks() : 0, step_.load(), median, peer,
                            recorder_ ? one_line(recorder_->summary()) : "starting MPI"));
}

void RankAgent::serve(const std::string& line) {
  std::string rest = line;
  const std::string word = take_word(rest);
  silent_ = 0;
  if (word == "challenge") {
    socket_.queue(fmt::format("hello {} {} {} {} {}", hmac_sha256(token_, rest), rank_,
                              variable("OMPI_COMM_WORLD_SIZE"), getpid(), comm::host_identity()));
    greeted_ = true;
    send_beat();
  } else if (word == "welcome") {
    limit_ = static_cast<double>(take_number(rest)) / 1000;
    period_ = static_cast<double>(take_number(rest)) / 1000;
  } else if (word == "stop") {
    stop_request_ = StopRequest::now;
    asked_to_stop = true;
  } else if (word == "yield" && stop_request_ == StopRequest::none) {
    stop_request_ = StopRequest::after_checkpoint;
  } else if (word == "dump") {
    dump();
  } else if (word == "over") {
    over_ = true;
  }
}

std::uint64_t RankAgent::progress() const {
  const std::lock_guard lock(mutex_);
  return step_.load() + (recorder_ ? recorder_->ticks() : 0);
}

// Returns when this object is destroyed.
void RankAgent::lose_supervisor() {
  if (over_) give_up("the supervisor has ended this attempt");
  lockstep::say("lockstep: rank {}: the supervisor is gone; a checkpoint after this step, then the end\n", rank_);
  drop_secrets(launch());
  alone_ = true;
  stop_request_ = StopRequest::now;
  asked_to_stop = true;
  RanTime still;
  const double patience = std::max(limit_, kStepsOfPatience * median_milliseconds() / 1000);
  for (std::uint64_t seen = progress(); still.seconds() <= patience;) {
    {
      std::unique_lock lock(mutex_);
      to_say_.clear();
      said_all_ = true;
      changed_.notify_all();
      if (stop_) return;
    }
    pollfd waiting{wake_, POLLIN, 0};
    ::poll(&waiting, 1, kLookAlone);
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t cleared = read(wake_, &count, sizeof count);
    if (const auto now = progress(); std::exchange(seen, now) != now) still = RanTime();
  }
  give_up("it made no progress after the supervisor was gone");
}

void RankAgent::give_up(const char* why) const {
  lockstep::say("lockstep: rank {}: {}; ending\n", rank_, why);
  _exit(static_cast<int>(ExitCode::infrastructure));
}

void RankAgent::run() {
  prctl(PR_SET_NAME, "lockstep-agent");
  auto last = Clock::now();
  double next_beat = 0;
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      for (; greeted_ && !to_say_.empty(); to_say_.pop_front()) socket_.queue(to_say_.front());
      if (stop_) break;
    }
    // Only time during which this thread could have received something counts as silence: the process may have been
    // stopped.
    const double passed = seconds_since(last);
    last = Clock::now();
    silent_ += std::min(passed, 2 * period_);
    next_beat -= passed;
    if (next_beat <= 0) {
      if (greeted_) send_beat();
      next_beat = period_;
    }
    if (!socket_.flush()) return lose_supervisor();
    if (!socket_.wants_to_write()) {
      const std::lock_guard lock(mutex_);
      said_all_ = to_say_.empty();
      changed_.notify_all();
    }
    std::array<pollfd, 2> waiting = {
        {{socket_.descriptor(), static_cast<short>(POLLIN | (socket_.wants_to_write() ? POLLOUT : 0)), 0},
         {wake_, POLLIN, 0}}};
    ::poll(waiting.data(), waiting.size(), static_cast<int>(std::max(0.0, next_beat) * 1000) + 1);
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t cleared = read(wake_, &count, sizeof count);
    std::vector<std::string> lines;
    const bool alive = socket_.read_lines(lines);
    for (const auto& line : lines) serve(line);
    if (!alive) return lose_supervisor();
    if (silent_ > limit_) {
      // No longer connected, so nothing else will end the daemon and the other ranks of this host.
      (void)kill_marked(variable(kMarkVariable), 0, kLastWordPatience);
      give_up("the supervisor does not answer");
    }
  }
  (void)socket_.flush();
}

}  // namespace lockstep::launch
