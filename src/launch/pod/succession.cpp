#include "launch/pod/succession.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "core/say.hpp"
#include "core/trace.hpp"
#include "core/whole_file.hpp"
#include "launch/processes.hpp"
#include "lockstep/error.hpp"

namespace lockstep::launch {

namespace {

constexpr double kLookEvery = 1;  ///< seconds: a question to the file system's server

}  // namespace

Succession::Succession(const SuccessionOptions& options)
    : name_(options.name),
      path_(options.file),
      vacancy_(options.first, options.after_leader, options.after_none, steady_seconds()) {
  try {
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
    file_ = std::make_unique<LockedFile>(path_);
  } catch (const std::system_error& error) {
    cannot_use(error.code().message());
  }
}

void Succession::cannot_use(const std::string& why) const {
  throw Error(
      ExitCode::cannot_create,
      fmt::format("--leader-lock: cannot use {}: {}; it must be on a volume that all pods may write to, and whose "
                  "locks hold among nodes",
                  path_, why));
}

bool Succession::leads() {
  const double now = steady_seconds();
  if (now < next_look_) return false;
  next_look_ = now + kLookEvery;
  if (!launch_processes_here().empty()) {
    vacancy_.seen(now);
    return false;
  }
  try {
    return look(now);
  } catch (const std::system_error& error) {
    cannot_use(error.code().message());
  }
}

bool Succession::look(double now) {
  begun_ = !leader().empty();
  if (!vacancy_.may_take(begun_, now)) {
    if (!file_->is_free()) vacancy_.seen(now);
    return false;
  }
  if (!file_->try_lock()) {
    vacancy_.seen(now);
    return false;
  }
  begun_ = !leader().empty();  // by a pod that was faster, and is gone again
  return true;
}

void Succession::begin() {
  if (begun_) say("lockstep pod: {} takes the lead of {}\n", name_, leader());
  try {
    file_->write(name_);
  } catch (const std::system_error& error) {
    cannot_use(error.code().message());
  }
}

double Succession::vacant_seconds() const {
  return vacancy_.seconds(steady_seconds());
}

bool Succession::is_vacant() {
  try {
    return file_->is_free();
  } catch (const std::system_error& error) {
    cannot_use(error.code().message());
  }
}

std::string Succession::leader() const {
  return read_whole_file(path_).value_or("");
}

}  // namespace lockstep::launch
