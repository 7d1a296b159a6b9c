#include "launch/host_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <iterator>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include "lockstep/error.hpp"
#include "lockstep/version.hpp"

namespace lockstep::launch {

namespace {

using std::chrono::milliseconds;

constexpr double kAnswerSeconds = 15;
constexpr std::size_t kMostAtOnce = 64;
constexpr double kLongestLeftOut = 3600;  ///< seconds, until a host that was left out is asked again
constexpr std::chrono::seconds kAloudPatience{10};
constexpr milliseconds kScriptPoll{10};

std::string shell_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace

HostPool::HostPool(PoolOptions options) : options_(std::move(options)) {
  if (options_.discover.empty()) {
    listed_ = options_.list();
  } else {
    BackgroundCommand script({options_.discover}, kDiscoveryPatience);
    auto result = script.poll();
    for (; !result; result = script.poll()) std::this_thread::sleep_for(kScriptPoll);
    listed_ = discovered_hosts(options_.discover, *result);
  }
  read_at_ = Clock::now();
  refresh();
}

bool HostPool::answered(const std::string& host) const {
  return (is_local(host) || answered_.contains(host)) && !left_out_.contains(host);
}

std::vector<std::string> HostPool::agent_command(const std::string& host, const std::string& arguments) const {
  return shell_command(host, shell_quoted(options_.program) + " " + arguments);
}

std::vector<std::string> HostPool::shell_command(const std::string& host, const std::string& line) const {
  std::vector<std::string> command;
  const auto add_words = [&](const std::string& text) {
    std::istringstream words(text);
    for (std::string word; words >> word;) command.push_back(word);
  };
  add_words(options_.agent);
  command.push_back(host);
  add_words(options_.shell);
  command.push_back(line);
  return command;
}

std::string HostPool::question(const std::string& program) const {
  std::string words = shell_quoted(program) + " version";
  if (!options_.mark.empty()) words += fmt::format(" && {{ cat {} || :; }}", shell_quoted(options_.lock_file));
  return words;
}

std::unique_ptr<BackgroundCommand> HostPool::ask_thoroughly(const std::string& host) const {
  auto command = shell_command(host, question(options_.program));
  if (is_local(host)) command = {"sh", "-c", question(own_program())};
  return std::make_unique<BackgroundCommand>(command, std::chrono::seconds(static_cast<int>(kAnswerSeconds)));
}

HostPool::Question HostPool::ask(const std::string& host) const {
  if (reference_ || is_local(host)) return {nullptr, Clock::now(), ask_thoroughly(host)};
  return {std::make_unique<Child>(agent_command(host, "version"), ChildOptions{"/dev/null", {}}), Clock::now(), {}};
}

void HostPool::hear(const std::string& host, Question& question) {
  const double waited = seconds_since(question.since);
  if (!question.open()) {
    // A host that was left out waits for others to train, with whom it can be compared.
    const bool later = !reference_ && (reference_question_ || (left_out_.contains(host) && !usable().empty()));
    if (waited < question.wait || later) return;
    crowded_ |= open_ >= kMostAtOnce;
    if (crowded_) return;
    ++open_;
    const int silences = question.silences;
    question = ask(host);
    question.silences = silences;
    return;
  }
  std::optional<BackgroundCommand::Result> answer;
  std::optional<int> code;
  if (question.thorough) {
    answer = question.thorough->poll();
    if (!answer) return;
    if (answer->code != kNoAnswer) code = answer->code;
  } else {
    code = question.child->poll();
    if (!code && waited < kAnswerSeconds) return;
  }
  if (code != 0) {
    refuse(host, question,
           fmt::format("host {} {}: it is skipped, and tried again every {:.0f} s; try: {} {} {} version", host,
                       code ? fmt::format("answered with {}", *code) : "does not answer", options_.ask_again_seconds,
                       options_.agent, host, options_.program));
    return;
  }
  const std::string why = answer && reference_ ? why_unfit(parse_host_answer(answer->output), *reference_) : "";
  if (!why.empty()) {
    refuse(host, question,
           fmt::format("host {}: {}; it is left out, and asked again every {:.0f} s", host, why,
                       options_.ask_again_seconds));
    tell_unfit(host, why);
    return;
  }
  answered_.insert(host);
  left_out_.erase(host);
  reported_.erase(host);
}

void HostPool::refuse(const std::string& host, Question& question, const std::string& problem) {
  auto& reported = reported_[host];
  if (reported != problem) problems_.push_back(problem);
  reported = problem;
  const double longest = std::max(options_.ask_again_seconds, options_.ask_again_at_most);
  const double wait = std::min(std::ldexp(options_.ask_again_seconds, question.silences), longest);
  const double spread = std::uniform_real_distribution(0.8, 1.2)(jitter_);
  question = {nullptr, Clock::now(), nullptr, wait * spread, std::min(question.silences + 1, 30)};
}

void HostPool::leave_out(const std::string& host, const std::string& why) {
  const double wait = std::min(std::ldexp(options_.ask_again_seconds, faults_[host]++), kLongestLeftOut);
  problems_.push_back(fmt::format("host {} is left out, and tried again after {:.0f} s: {}", host, wait, why));
  answered_.erase(host);
  left_out_.insert(host);
  questions_[host] = {nullptr, Clock::now(), nullptr, wait};
  tell_unfit(host, why);
}

void HostPool::tell_unfit(const std::string& host, const std::string& why) {
  if (options_.tell_unfit.empty() || is_local(host)) return;
  telling_.push_back(std::make_unique<BackgroundCommand>(agent_command(host, options_.tell_unfit),
                                                         std::chrono::seconds(static_cast<int>(kAnswerSeconds)), why));
}

void HostPool::trained(const Hosts& hosts) {
  for (const Host& host : hosts) faults_.erase(host.name);
  if (!hosts.empty()) reference_question_ = ask_thoroughly(hosts.front().name);
}

void HostPool::hear_reference() {
  if (!reference_question_) return;
  const auto answer = reference_question_->poll();
  if (!answer) return;
  reference_question_.reset();
  if (answer->code != 0) return;  // it is lost: then others take its place, and train
  reference_ = parse_host_answer(answer->output);
  reference_->version = version();  // what has been installed there since is none that trains
  if (!options_.same_fingerprint) reference_->fingerprint.clear();
  reference_->launch = options_.mark;
}

void HostPool::take_list(const std::function<Hosts()>& list) {
  try {
    listed_ = list();
    last_problem_.clear();
  } catch (const Error& error) {
    if (last_problem_ != error.what())
      problems_.push_back(fmt::format("{}; the list of hosts stays as it is", error.what()));
    last_problem_ = error.what();
  }
}

// A script may take arbitrarily long: heartbeats are received meanwhile.
void HostPool::read_list() {
  if (discovery_) {
    if (const auto result = discovery_->poll()) {
      take_list([&] { return discovered_hosts(options_.discover, *result); });
      discovery_.reset();
      read_at_ = Clock::now();
    }
    return;
  }
  if (seconds_since(read_at_) < options_.read_again_seconds) return;
  read_at_ = Clock::now();
  if (options_.discover.empty()) {
    take_list(options_.list);
  } else {
    discovery_ = std::make_unique<BackgroundCommand>(std::vector{options_.discover}, kDiscoveryPatience);
  }
}

void HostPool::ask_silent_now() {
  for (auto& [host, question] : questions_) {
    if (!question.open() && !left_out_.contains(host)) question.wait = 0;
  }
  refresh();
}

void HostPool::refresh() {
  read_list();
  hear_reference();
  std::erase_if(telling_, [](const auto& told) { return told->poll().has_value(); });
  crowded_ = false;
  open_ = std::count_if(questions_.begin(), questions_.end(), [](const auto& q) { return q.second.open(); });
  for (const Host& host : listed_) {
    if (answered(host.name) || questions_.contains(host.name)) continue;
    if (reference_question_ && !reference_) continue;  // soon there is something to compare it with
    if (options_.exists && !is_local(host.name) && !options_.exists(host.name)) continue;
    questions_[host.name] = {nullptr, Clock::now(), nullptr};
  }
  for (auto& [host, question] : questions_) hear(host, question);
  std::erase_if(questions_, [&](const auto& entry) { return answered(entry.first); });
}

void HostPool::settle(milliseconds patience) {
  const auto end = Clock::now() + patience;
  for (refresh(); (open_ > 0 || crowded_) && Clock::now() < end; refresh()) std::this_thread::sleep_for(kScriptPoll);
}

void HostPool::ask_all_again(milliseconds patience) {
  answered_.clear();
  std::erase_if(questions_, [&](const auto& entry) { return !left_out_.contains(entry.first); });
  settle(patience);
}

std::string HostPool::why_silent(const std::string& host) const {
  const CommandOutput said = run_command(agent_command(host, "version"), kAloudPatience);
  if (said.code == kNoAnswer) return fmt::format("no answer within {} s", kAloudPatience.count());
  const auto end = said.output.find_last_not_of(" \r\n");
  if (end == std::string::npos) return fmt::format("answered with {}", said.code);
  const auto line_end = said.output.find_last_of("\r\n", end);  // end of the previous line
  const auto start = line_end == std::string::npos ? 0 : line_end + 1;
  return said.output.substr(start, end + 1 - start);
}

Hosts HostPool::usable() const {
  Hosts hosts;
  for (const Host& host : listed_) {
    if (answered(host.name)) hosts.push_back(host);
  }
  return hosts;
}

std::map<std::string, BackgroundCommand::Result> HostPool::run_on(const Hosts& hosts, const std::string& line,
                                                                  milliseconds patience,
                                                                  const std::string& input) const {
  std::map<std::string, BackgroundCommand::Result> results;
  std::map<std::string, BackgroundCommand> running;
  auto next = hosts.begin();
  while (next != hosts.end() || !running.empty()) {
    for (; next != hosts.end() && running.size() < kMostAtOnce; ++next) {
      if (!is_local(next->name)) running.try_emplace(next->name, shell_command(next->name, line), patience, input);
    }
    for (auto one = running.begin(); one != running.end();) {
      auto result = one->second.poll();
      if (result) results.emplace(one->first, std::move(*result));
      one = result ? running.erase(one) : std::next(one);
    }
    if (!running.empty()) std::this_thread::sleep_for(kScriptPoll);
  }
  return results;
}

std::map<std::string, int> HostPool::run_everywhere(const Hosts& hosts, const std::string& arguments,
                                                    milliseconds patience, const std::string& input) {
  std::map<std::string, int> lost;
  for (const auto& [host, result] : run_on(hosts, shell_quoted(options_.program) + " " + arguments, patience, input)) {
    if (result.code == 0) continue;
    lost.emplace(host, result.code);
    answered_.erase(host);
    questions_[host] = {nullptr, Clock::now(), nullptr, options_.ask_again_seconds};
  }
  return lost;
}

std::map<std::string, std::string> HostPool::unfit(
    const Hosts& hosts, const std::string& arguments, milliseconds patience, const std::string& input,
    const std::function<std::string(const std::string& host, int code)>& why_lost) const {
  std::string line = shell_quoted(options_.program) + " " + arguments;
  if (reference_) line += " && " + question(options_.program);
  std::map<std::string, std::string> unfit;
  for (const auto& [host, result] : run_on(hosts, line, patience, input)) {
    const std::string why = result.code != 0 ? why_lost(host, result.code)
                            : reference_     ? why_unfit(parse_host_answer(result.output), *reference_)
                                             : "";
    if (!why.empty()) unfit.emplace(host, why);
  }
  return unfit;
}

std::set<std::string> HostPool::without_lock(const Hosts& hosts, milliseconds patience) const {
  std::set<std::string> blind;
  if (options_.mark.empty()) return blind;
  const HostAnswer sees_it{.launch = options_.mark};
  for (const auto& [host, result] : run_on(hosts, question(options_.program), patience, {})) {
    if (result.code == 0 && !why_unfit(parse_host_answer(result.output), sees_it).empty()) blind.insert(host);
  }
  return blind;
}

std::vector<std::string> HostPool::take_problems() {
  return std::exchange(problems_, {});
}

namespace {

constexpr std::string_view kVersion = "lockstep ", kFingerprint = "fingerprint: ";

}  // namespace

HostAnswer parse_host_answer(const std::string& output) {
  HostAnswer answer;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kVersion)) {
      answer.version = line.substr(kVersion.size());
    } else if (line.starts_with(kFingerprint)) {
      answer.fingerprint = line.substr(kFingerprint.size());
    } else if (!answer.fingerprint.empty() && !line.empty()) {
      answer.launch = line;
    }
  }
  return answer;
}

std::string why_unfit(const HostAnswer& found, const HostAnswer& expected) {
  if (!expected.version.empty() && found.version != expected.version) {
    return fmt::format("expected lockstep {}, which the others have, found {}; install the same version there",
                       expected.version, found.version);
  }
  if (!expected.fingerprint.empty() && found.fingerprint != expected.fingerprint) {
    return fmt::format(
        "expected the fingerprint of the others, {}, found {}; use one kind of processor and one "
        "version of the libraries, or set exact: preferred",
        expected.fingerprint, found.fingerprint);
  }
  if (!expected.launch.empty() && found.launch != expected.launch) {
    return fmt::format(
        "expected this launch's launch.lock in the run directory, found {}; mount the run directory "
        "there",
        found.launch.empty() ? "none" : "another one");
  }
  return "";
}

}  // namespace lockstep::launch
