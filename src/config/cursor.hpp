// Cursor: the parser's position: a value, its path in the job, and the session that collects problems.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "config/yaml_node.hpp"

namespace lockstep::config {

class Rule;

/// A path in the job as overrides write it: without a leading "job.".
[[nodiscard]] std::string override_key(const std::string& path);

/// The reading of one job: what is known about its context, and the problems found.
struct Session {
  std::string file;
  std::string folder;  ///< the file's; paths in the job are tried relative to it first
  bool need_data = false;
  bool broken = false;               ///< the text is not YAML: no other message is useful
  const JobFile* written = nullptr;  ///< a job whose canonical text is read: values have the places that it has
  const Rule* root = nullptr;        ///< the rule of `job`, used to find where a misplaced key belongs
  std::vector<Problem> problems;
  std::size_t missing_data = 0;         ///< how many of the problems are that data are not there
  std::map<std::string, Place> places;  ///< of every value in the file, by path

  Place place(const Mark& mark, const std::string& path) const;
  void problem(const Mark& mark, const std::string& path, std::string message);
};

class Cursor {
 public:
  Cursor(const YamlNode& node, std::string path, Session& session)
      : node_(&node), path_(std::move(path)), session_(&session) {}

  const YamlNode& node() const { return *node_; }
  const std::string& path() const { return path_; }
  Session& session() const { return *session_; }
  Place place() const { return session_->place(node_->mark, path_); }

  Cursor entry(const Entry& entry) const { return {entry.value, path_ + "." + entry.key, *session_}; }
  Cursor item(std::size_t index) const;

  void problem(std::string message) const { session_->problem(node_->mark, path_, std::move(message)); }
  /// Data that are not there, which is no mistake of the job: they may be away for a while.
  void missing_data(std::string message) const {
    ++session_->missing_data;
    problem(std::move(message));
  }
  /// Reports "expected <what>, found <the value><advice>".
  void expected(const std::string& what, const std::string& advice = "") const;

 private:
  const YamlNode* node_;
  std::string path_;
  Session* session_;
};

}  // namespace lockstep::config
