#include "tools/sweep/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/files.hpp"
#include "lockstep/error.hpp"

namespace lockstep::sweep {

namespace {

using Json = nlohmann::ordered_json;

Json settings_json(const Settings& settings) {
  Json json = Json::object();
  for (const auto& [path, value] : settings) json[path] = Json::parse(value);
  return json;
}

Settings settings_of(const Json& json) {
  Settings settings;
  for (const auto& [path, value] : json.items()) settings.push_back({path, value.dump()});
  return settings;
}

std::optional<Origin> origin_of(const Json& json, int trial) {
  if (!json.contains("from")) return std::nullopt;
  const Origin origin{json.at("from").at("trial"), json.at("from").at("step")};
  if (origin.trial < 0 || origin.trial >= trial) throw std::out_of_range("from");
  return origin;
}

Result result_of(const Json& json) {
  return {.steps = json.at("steps"),
          .value = json.at("value"),
          .metrics = json.at("metrics"),
          .outcome = json.at("outcome"),
          .parameters_sha256 = json.at("parameters_sha256"),
          .data = {json.value("data", ""), json.value("sources", std::map<std::string, std::string>())},
          .device_seconds = json.at("device_seconds"),
          .finished = json.at("finished")};
}

void apply(Study& study, const Json& json) {
  const std::string kind = json.at("record");
  const int trial = json.at("trial");
  if (trial < 0 || trial > static_cast<int>(study.trials().size())) throw std::out_of_range("trial");
  if (kind == "begin") return study.begin(settings_of(json.at("settings")), json.at("until"), origin_of(json, trial));
  if (kind == "promote") return study.promote(trial, json.at("until"));
  if (kind == "result") return study.tell(trial, result_of(json));
  if (kind != "failure") throw std::out_of_range("record");
  study.fail(trial, {.message = json.at("message"),
                     .device_seconds = json.at("device_seconds"),
                     .final = json.at("final"),
                     .code = json.value("code", 0),
                     .place = json.value("place", ""),
                     .counts = json.value("counts", true)});
}

/// The keys in which two sweeps differ.
std::vector<std::string> differing(const Json& was, const Json& is, const std::string& whole) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : was.items()) {
    if (!is.contains(key) || is.at(key) != value) keys.push_back(key == "job_sha256" ? "job" : whole + "." + key);
  }
  for (const auto& [key, value] : is.items()) {
    if (!was.contains(key)) keys.push_back(whole + "." + key);
  }
  return keys;
}

}  // namespace

Journal::Journal(std::string path, const config::SweepFile& sweep)
    : path_(std::move(path)),
      file_(path_, O_RDWR | O_CREAT | O_APPEND),
      study_(static_cast<const SweepOptions&>(sweep)),
      canonical_(sweep.canonical) {
  read();
}

// What could not be read must never look like what was not written: the file is as long as what was read of it.
void Journal::cut_torn_line(std::size_t whole, std::size_t read) {
  if (file_.size() != read) {
    throw Error(
        ExitCode::infrastructure,
        fmt::format("{}: has {} bytes, but {} were read; try again when its disk answers", path_, file_.size(), read));
  }
  if (whole == read) return;
  if (::ftruncate(file_.descriptor(), static_cast<off_t>(whole)) != 0) {
    throw Error(ExitCode::infrastructure, fmt::format("{}: cannot cut off its last line, which was not written to its "
                                                      "end: {}",
                                                      path_, std::strerror(errno)));
  }
  repaired_ = fmt::format("{}: its last line was not written to its end; these {} bytes have been cut off", path_,
                          read - whole);
}

void Journal::read() {
  const std::string text = read_whole_file(path_).value_or("");
  const std::size_t whole = text.rfind('\n') + 1;  // 0 if there is no line
  cut_torn_line(whole, text.size());
  const Json own = Json::parse(canonical_);
  if (whole == 0) return append(Json{{"record", "sweep"}, {"sweep", own}}.dump());
  int number = 0;
  for (std::size_t from = 0, to = 0; from < whole; from = to + 1) {
    to = text.find('\n', from);
    const Json json = Json::parse(text.substr(from, to - from), nullptr, /*allow_exceptions=*/false);
    ++number;
    try {
      if (number > 1) {
        apply(study_, json);
        continue;
      }
      const auto keys = differing(json.at("sweep"), own, study_.options().whole());
      if (keys.empty()) continue;
      throw Error(ExitCode::configuration,
                  fmt::format("{}: expected the {} that was begun in this directory, found another: it differs in {}; "
                              "choose another directory with --directory",
                              path_, study_.options().whole(), fmt::join(keys, ", ")));
    } catch (const Json::exception&) {
    } catch (const std::out_of_range&) {
    }
    throw Error(ExitCode::data, fmt::format("{}:{}: expected a record of a sweep, found none; the file is damaged. "
                                            "Choose another directory with --directory",
                                            path_, number));
  }
}

void Journal::append(const std::string& line) {
  file_.append(line + "\n");
  file_.sync();
  if (on_line_) on_line_(line);
}

void Journal::begin(const Begin& decision) {
  Json record = {{"record", "begin"},
                 {"trial", study_.trials().size()},
                 {"settings", settings_json(decision.settings)},
                 {"until", decision.until}};
  if (decision.origin) record["from"] = {{"trial", decision.origin->trial}, {"step", decision.origin->steps}};
  append(record.dump());
  study_.begin(decision.settings, decision.until, decision.origin);
}

void Journal::promote(const Promote& decision) {
  append(Json{{"record", "promote"}, {"trial", decision.trial}, {"until", decision.until}}.dump());
  study_.promote(decision.trial, decision.until);
}

void Journal::result(int trial, const Result& result) {
  append(Json{{"record", "result"},
              {"trial", trial},
              {"steps", result.steps},
              {"value", result.value},
              {"metrics", result.metrics},
              {"outcome", result.outcome},
              {"parameters_sha256", result.parameters_sha256},
              {"data", result.data.samples},
              {"sources", result.data.sources},
              {"device_seconds", result.device_seconds},
              {"finished", result.finished}}
             .dump());
  study_.tell(trial, result);
}

void Journal::failure(int trial, const Failure& failure) {
  append(Json{{"record", "failure"},
              {"trial", trial},
              {"message", failure.message},
              {"device_seconds", failure.device_seconds},
              {"final", failure.final},
              {"code", failure.code},
              {"place", failure.place},
              {"counts", failure.counts}}
             .dump(-1, ' ', false, Json::error_handler_t::replace));
  study_.fail(trial, failure);
}

}  // namespace lockstep::sweep
