// From text to Job: parse, apply overrides, read by the rules, fill in what depends on other values.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <tuple>

#include "config/micro_batches.hpp"
#include "config/overrides.hpp"
#include "config/sections.hpp"
#include "config/sweep_rules.hpp"
#include "config/yaml_dialects.hpp"
#include "config/yaml_reader.hpp"
#include "core/nearest.hpp"

namespace lockstep::config {
namespace {

std::string lines(const std::vector<Problem>& problems) {
  std::string text;
  for (const auto& problem : problems) text += (text.empty() ? "" : "\n") + problem.text();
  return text;
}

std::vector<Problem> in_order(std::vector<Problem> problems) {
  const auto key = [](const Problem& p) { return std::make_tuple(p.place.line == 0, p.place.line, p.place.column); };
  std::stable_sort(problems.begin(), problems.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  return problems;
}

/// Reports unknown root keys and returns the value of `job`, which is created if the file is empty and there are
/// overrides.
YamlNode* job_of(YamlNode& root, Session& session, bool overridden) {
  if (root.is(YamlNode::Kind::nothing) && overridden) {
    root.kind = YamlNode::Kind::mapping;
    root.entries.push_back({"job", {0, 0, true}, {}});
  }
  if (!root.is(YamlNode::Kind::mapping)) {
    session.problem(root.mark.line == 0 ? Mark{1, 1, false} : root.mark, "",
                    fmt::format("expected a map with the key 'job', found {}", describe(root)));
    return nullptr;
  }
  std::vector<std::string> known = chart_keys();
  known.insert(known.begin(), {"job", "sweep"});
  for (const auto& entry : root.entries) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    session.problem(entry.mark, entry.key,
                    fmt::format("expected 'job', 'sweep' or a root key of the Helm chart, found '{}'{}", entry.key,
                                did_you_mean(entry.key, known)));
  }
  Entry* job = root.find("job");
  if (job == nullptr) session.problem(root.mark, "job", "expected a map, found nothing: this key is required");
  return job == nullptr ? nullptr : &job->value;
}

/// A sweep beside the job is not needed for the job, but its mistakes are reported.
void check_sweep(const YamlNode& root, Session& session, const Catalogue& catalogue) {
  const Entry* entry = root.find("sweep");
  SweepOptions ignored;
  if (entry != nullptr) sweep_section(catalogue).rule->read(Cursor(entry->value, "sweep", session), &ignored);
}

void finish(JobFile& job, const Session& session, const Catalogue& catalogue) {
  if (job.name.empty()) job.name = std::filesystem::path(session.file).stem().string();
  if (job.run_directory.empty()) job.run_directory = "runs/" + job.name;
  for (SourceOptions* source : {&job.data.train, job.data.validation ? &*job.data.validation : nullptr,
                                job.data.test ? &*job.data.test : nullptr}) {
    if (source == nullptr) continue;
    source->targets_apart = !job.losses.empty();
    source->targets_centred = job.data.normalize_target;
    const bool says_no_target = source->target.empty() && source->mask.empty() && source->kind == job.data.train.kind;
    if (says_no_target) source->target = job.data.train.target;
    if (source->kind != SourceKind::csv || job.data.train.kind != SourceKind::csv || !source->mask.empty()) continue;
    source->attributes = job.data.train.attributes;  // the masks of the training set
  }
  if (job.micro_batches == 0)
    job.micro_batches = default_micro_batches(job.batch_size, micro_batch_work(job, catalogue));
  job.places = session.places;
  choose_rate(job, catalogue);
}

}  // namespace

Problems::Problems(const std::vector<Problem>& list) : Problems(list, ExitCode::configuration) {}
Problems::Problems(const std::vector<Problem>& list, ExitCode code)
    : Error(code, lines(in_order(list))), list_(in_order(list)) {}

namespace {

JobFile read_job(const std::string& text, Session& session, const std::vector<std::string>& overrides,
                 const Catalogue& catalogue) {
  const Is<Job> section = job_section(catalogue);
  session.root = section.rule.get();
  YamlNode root = parse_yaml(text, session);
  if (session.broken) throw Problems(session.problems);

  JobFile job;
  if (YamlNode* node = job_of(root, session, !overrides.empty())) {
    apply_overrides(*node, *section.rule, overrides, session);
    section.rule->read(Cursor(*node, "job", session), static_cast<Job*>(&job));
  }
  check_sweep(root, session, catalogue);
  for (const Entry& entry : root.entries) {
    if (entry.key == "job" || entry.key == "sweep") refuse_ambiguous(entry.value, entry.key, session);
  }
  if (!session.problems.empty()) {
    throw Problems(session.problems,
                   session.missing_data == session.problems.size() ? ExitCode::data : ExitCode::configuration);
  }
  finish(job, session, catalogue);
  return job;
}

}  // namespace

JobFile load_text(const std::string& text, const std::string& file_name, const std::vector<std::string>& overrides,
                  const Catalogue& catalogue, bool need_data) {
  Session session;
  session.file = file_name;
  session.folder = std::filesystem::path(file_name).parent_path().string();
  session.need_data = need_data;
  return read_job(text, session, overrides, catalogue);
}

JobFile completed(const JobFile& job, const Catalogue& catalogue) {
  Session session;
  session.written = &job;
  const std::string text = canonical(job, catalogue).text;
  JobFile whole = read_job(text, session, {}, catalogue);
  if (canonical(whole, catalogue).text == text) return job;  // nothing was left to choose
  whole.places = job.places;
  const auto keep_paths = [](const SourceOptions& from, SourceOptions& to) { to.paths = from.paths; };  // expanded
  keep_paths(job.data.train, whole.data.train);
  if (job.data.validation) keep_paths(*job.data.validation, *whole.data.validation);
  if (job.data.test) keep_paths(*job.data.test, *whole.data.test);
  return whole;
}

JobFile load(const std::string& path, const std::vector<std::string>& overrides, const Catalogue& catalogue,
             bool need_data) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file || file.bad() || std::filesystem::is_directory(path)) {
    throw Problems({{Place{.file = path}, "expected a job file, found none that can be read; check the path"}});
  }
  return load_text(text.str(), path, overrides, catalogue, need_data);
}

/// examples/digits.yaml has the same text; a test checks that they are equal.
std::string default_job_text() {
  return R"(# Digits that the program draws itself: nothing to download. This is also what `lockstep train` runs
# without a file.
job:
  name: digits
  seed: 1
  model:
    layers:
      - {conv: {filters: 16, kernel: 3}}
      - relu
      - {max_pool: {kernel: 2}}
      - {conv: {filters: 32, kernel: 3}}
      - relu
      - {max_pool: {kernel: 2}}
      - flatten
      - {dropout: 0.2}
      - {linear: {features: 10}}
  data:
    train: {digits: {count: 12000}}
    validation: {digits: {count: 2000, first: 1000000}}
  batch_size: 64
  micro_batches: 8
  epochs: 4
  loss: cross_entropy
  metrics: [accuracy]
  optimizer: {adam: {}}
  learning_rate: {peak: 0.002, warmup: 20 steps, schedule: {cosine: {final: 0}}}
)";
}

JobFile default_job(const std::vector<std::string>& overrides, const Catalogue& catalogue, bool need_data) {
  return load_text(default_job_text(), "digits.yaml", overrides, catalogue, need_data);
}

}  // namespace lockstep::config
