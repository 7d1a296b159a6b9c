#include "cli/self_launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>

#include "comm/transport/mpi_folder.hpp"
#include "device/gpu/driver.hpp"
#include "launch/child.hpp"
#include "launch/mpirun.hpp"
#include "launch/stop_signals.hpp"
#include "lockstep/error.hpp"

namespace lockstep::cli {

int automatic_ranks(const Job& job) {
  if (job.device != DeviceChoice::cuda) return 1;
  const std::size_t gpus = job.devices.empty() ? device::ask_driver().gpus.size() : job.devices.size();
  return static_cast<int>(
      std::clamp<std::int64_t>(static_cast<std::int64_t>(gpus), 1, std::max<std::int64_t>(job.shards, 1)));
}

int rank_count(const std::string& text, int automatic) {
  if (text == "auto") return automatic;
  int ranks = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  if (error != std::errc{} || end != text.data() + text.size() || ranks < 1) {
    throw Error(ExitCode::usage, fmt::format("--ranks: expected a positive number or auto, found '{}'", text));
  }
  return ranks;
}

int run_under_mpirun(int ranks) {
  auto command = launch::mpirun_command({.ranks = ranks, .hosts = {}, .agent = "", .environment = {}, .mark = ""});
  for (auto& word : launch::own_command_line()) command.push_back(std::move(word));
  launch::StopSignals signals;
  launch::Child mpirun(command, {});
  int passed_on = 0;
  while (!mpirun.wait(std::chrono::milliseconds(5))) {
    (void)signals.sleep(0.01);
    for (const int come = signals.count(); passed_on < come; ++passed_on) {
      mpirun.signal(passed_on == 0 ? SIGUSR1 : (signals.last() == SIGUSR1 ? SIGTERM : signals.last()));
    }
  }
  comm::remove_dead_mpi_folders();  // of ranks that were killed
  const int code = *mpirun.poll();
  if (code == 127) {
    fmt::print(stderr, "lockstep: install openmpi-bin, or run without --ranks\n");
    return static_cast<int>(ExitCode::usage);
  }
  const bool at_once = passed_on > 1 && code != 0 && code != static_cast<int>(ExitCode::interrupted);
  if (at_once) return 128 + signals.last();  // mpirun says anything
  return mpirun.killed() ? static_cast<int>(ExitCode::infrastructure) : code;
}

}  // namespace lockstep::cli
