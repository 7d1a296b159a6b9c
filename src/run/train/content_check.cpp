#include "run/train/content_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "comm/transport/host_leader.hpp"
#include "core/background.hpp"
#include "core/digest.hpp"
#include "data/bytes.hpp"
#include "lockstep/error.hpp"
#include "run/train/first_text.hpp"
#include "run/train/start_check.hpp"

namespace lockstep::train {

ContentCheck::ContentCheck(const RunContext& run, std::shared_ptr<input::SourceIndexes> sources)
    : run_(run), sources_(std::move(sources)) {
  if (!sources_) return;
  sets_ = sources_->large();
  digests_.resize(sets_.size());
  if (sets_.empty()) return;
  std::promise<void> done;
  read_ = done.get_future();
  thread_ = std::jthread([this, promise = std::move(done)](const std::stop_token& stop) mutable {
    work_in_background();
    try {
      read(stop);
      promise.set_value();
    } catch (...) {  // rethrown by wait()
      promise.set_exception(std::current_exception());
    }
  });
}

void ContentCheck::read(const std::stop_token& stop) {
  const auto go_on = [&](double fraction) {
    fraction_ = fraction;
    return !stop.stop_requested();
  };
  for (std::size_t i = 0; i < sets_.size() && !stop.stop_requested(); ++i) {
    if (sources_->reads(sets_[i])) digests_[i] = sources_->content(sets_[i], go_on);
  }
}

// Returns false if it is stopped first.
bool ContentCheck::wait(comm::WorkProgress& progress) {
  double seen = -1;
  while (read_.wait_for(std::chrono::milliseconds(200)) != std::future_status::ready) {
    if (progress.stopped()) return false;
    if (fraction_ != seen) progress.advance();
    seen = fraction_;
  }
  return true;
}

// The host leader has read every set that the ranks of its host share; a rank whose files differ has read those itself.
std::vector<std::string> ContentCheck::digests_of_host() {
  const std::string made = comm::make_once_a_host(run_.communicator, [&] {
    std::string all;
    for (const auto& digest : digests_) data::append_text(all, digest);
    return all;
  });
  data::ByteReader reader(made, "the content digests of another rank end too early");
  std::vector<std::string> digests;
  for (const auto& own : digests_) {
    const std::string leaders = reader.text();
    digests.push_back(own.empty() ? leaders : own);
  }
  return digests;
}

bool ContentCheck::compare(checkpoint::Progress& progress, const comm::StopPoll& stop) {
  if (!is_read_on_all_ranks(progress.step, stop)) return false;
  compared_ = true;
  const std::string now = compare_ranks();
  std::string& known = progress.metadata["data_content"];
  if (!known.empty() && known != now) {
    throw Error(ExitCode::other_data,
                fmt::format("{}: the data set has the names and sizes of the one that this run began with, but not its "
                            "content; restore it, or choose a new run_directory",
                            run_.job.run_directory));
  }
  known = now;
  return true;
}

void ContentCheck::require_unchanged(std::int64_t step) {
  if (!sources_) return;
  const std::string change =
      first_text(run_.communicator, {"files of the data set", static_cast<std::uint64_t>(step), run_.timeout()}, [&] {
        std::string own = sources_->changed();
        const auto& topology = run_.communicator.topology();
        if (own.empty() || topology.host_names.size() == 1) return own;
        return fmt::format("on {}, {}", topology.host_name(run_.communicator.rank()), own);
      });
  if (change.empty()) return;
  throw Error(ExitCode::data, fmt::format("step {}: {}; steps since the newest checkpoint may have read both, so none "
                                          "is written. Restore the file and run again to resume from there, or choose "
                                          "a new run_directory",
                                          step, change));
}

bool ContentCheck::is_read_on_all_ranks(std::int64_t step, const comm::StopPoll& stop) {
  if (run_.leads() && read_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    run_.warn(
        fmt::format("step {}: the first checkpoint waits until {} is read to its end and "
                    "compared between the hosts; {:.0f} % is done",
                    step, fmt::join(sets_, " and "), 100 * fraction_));
  }
  const Operation operation{"content of the data set", static_cast<std::uint64_t>(step), run_.timeout()};
  const auto read = comm::work_together(run_.communicator, operation,
                                        [&](comm::WorkProgress& progress) { return wait(progress); }, {.stop = stop});
  return std::all_of(read.begin(), read.end(), [](bool of_rank) { return of_rank; });
}

std::string ContentCheck::compare_ranks() {
  read_.get();
  std::vector<StartFact> facts;
  Sha256 all;
  const auto digests = digests_of_host();
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    facts.push_back({.name = fmt::format("content of data.{}", sets_[i]),
                     .value = digests[i],
                     .remedy = "copy the same files to every host, and begin anew: steps of this run have seen both",
                     .of_host = false});
    all.add(digests[i]);
  }
  (void)compare_start(facts, true, run_.communicator, comm::kStartDeadline);
  return all.hex();
}

}  // namespace lockstep::train
