#include "launch/pod/succession.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "core/files.hpp"
#include "core/say.hpp"
#include "core/trace.hpp"
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
    make_folders(std::filesystem::path(path_).parent_path().string());
    file_ = std::make_unique<LockedFile>(path_);
  } catch (const Error& error) {
    cannot_use(error.what());
  }
}

void Succession::cannot_use(const std::string& why) const {
  throw Error(
      ExitCode::cannot_create,
      fmt::format("--leader-lock: {}; it must be on a volume that all pods may write to, and whose locks hold among "
                  "nodes",
                  why));
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
    const bool leads = look(now);
    problem_.clear();
    return leads;
  } catch (const Error& error) {  // a disk that does not answer says nothing about the lead
    if (error.code() != ExitCode::infrastructure) cannot_use(error.what());
    if (problem_ != error.what()) say("lockstep pod: {}; looking again\n", error.what());
    problem_ = error.what();
    return false;
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
  } catch (const Error& error) {
    cannot_use(error.what());
  }
}

double Succession::vacant_seconds() const {
  return vacancy_.seconds(steady_seconds());
}

bool Succession::is_vacant() {
  try {
    return file_->is_free();
  } catch (const Error& error) {
    if (error.code() != ExitCode::infrastructure) cannot_use(error.what());
    return false;
  }
}

std::string Succession::leader() const {
  return read_whole_file(path_).value_or("");
}

}  // namespace lockstep::launch
