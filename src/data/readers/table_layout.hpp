// What a table is read as: which of its columns are features, targets and weights, and which of them have categories or
// classes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/open.hpp"
#include "data/readers/table_columns.hpp"
#include "lockstep/data_set.hpp"
#include "lockstep/job.hpp"

namespace lockstep::data {

/// The feature of a sample that has all columns that are features.
inline constexpr const char* kTableFeatures = "features";

/// Of this source, or as the training set has it.
class TableLayout {
 public:
  /// `files`: all of the source, of which the first one's header counts; must outlive this. Without `options.like` this
  /// is the training set. Throws Error(data) that names the source's paths and the column.
  TableLayout(const std::vector<TableFile>& files, const SourceOptions& source, const IndexOptions& options);

  std::vector<Column> columns;                    ///< features, in the order of their elements
  std::vector<std::vector<std::string>> classes;  ///< by target; empty: numbers
  std::vector<std::string> warnings;              ///< about columns that are left out, or had better be
  RowWindow window;                               ///< of a time series; no rows: each row is a sample
  /// With the names of columns in the place of patterns.
  const SourceOptions& source() const { return source_; }
  /// Whether each target is a feature of its own.
  bool apart() const { return source_.targets_apart && source_.target.size() > 1; }
  /// Of kTableFeatures.
  std::int64_t elements() const;

 private:
  [[noreturn]] void fail(const std::string& what) const;
  std::string first_fault() const;
  bool is_target(const std::string& name) const;
  bool is_categorical(const std::string& name) const;
  std::vector<std::string> known_targets(const DataSetInfo& like) const;
  std::vector<std::string> targets(const DataSetInfo* like, const std::vector<std::string>& except) const;
  void choose_window(const DataSetInfo* like);
  void require_one_use() const;
  std::vector<std::string> row_names() const;
  [[nodiscard]] std::vector<std::string> feature_names();
  void add_column(const std::string& name);
  std::string reason_to_leave_out(const std::string& name, const ColumnValues& values) const;
  void require_points(const std::string& name, const ColumnValues& values) const;
  void warn_of_looks(const std::string& name, const ColumnValues& values, bool categorical);
  void warn_of_date_target(const std::string& name, const ColumnValues& values);
  void choose_target(const IndexOptions& options);
  void take(const DataSetInfo& like);
  bool takes_targets(const DataSetInfo& like);

  const std::vector<TableFile>& files_;
  SourceOptions source_;
  std::vector<std::string> named_;  ///< features that the job names one by one
};

}  // namespace lockstep::data
