// Opens any data set: from the job's source options to a DataSet that is indexed and checked.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/index_notes.hpp"
#include "data/target_range.hpp"
#include "lockstep/data_set.hpp"
#include "lockstep/job.hpp"

namespace lockstep::data {

struct IndexOptions {
  int threads = 0;                    ///< threads that check samples while indexing; 0: as many as this process may use
  const DataSetInfo* like = nullptr;  ///< validation, test: the training set's info, which determines classes,
                                      ///< vocabulary and channels
  IndexNotes* notes = nullptr;        ///< notes of an earlier index; new ones are added; null: none
  const ReaderRegistry* readers = nullptr;      ///< that a source of kind `own` may name
  std::vector<TargetRange>* targets = nullptr;  ///< where readers of tables and CSVs write what these range over
};

/// Opens, indexes and checks. Throws Error(data) that begins with the source's place and names the file and what is
/// wrong with it.
[[nodiscard]] std::unique_ptr<DataSet> open(const SourceOptions& source, const IndexOptions& options = {});

/// What the source alone tells of its samples, without its files: as open() says it, but for the names of classes and
/// the vocabulary where these are of the files. Nothing: only the files tell what a sample is.
[[nodiscard]] std::optional<DataSetInfo> foresee(const SourceOptions& source);

}  // namespace lockstep::data
