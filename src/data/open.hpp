// The way into every data set: what the job says about a source, to a DataSet that is indexed and checked.
#pragma once

#include <memory>
#include <string>

#include "data/index_notes.hpp"
#include "lockstep/data_set.hpp"
#include "lockstep/job.hpp"

namespace lockstep::data {

struct IndexOptions {
  int threads = 0;                    ///< that check samples while indexing; 0: as many as this process may use
  const DataSetInfo* like = nullptr;  ///< validation, test: classes, vocabulary and channels are the training set's
  IndexNotes* notes = nullptr;        ///< of an earlier index, and where this one notes what it finds; null: none
};

/// Opens, indexes and checks. Throws Error(data) that begins with the source's place and names the file and what
/// is wrong with it.
[[nodiscard]] std::unique_ptr<DataSet> open(const SourceOptions& source, const IndexOptions& options = {});

}  // namespace lockstep::data
