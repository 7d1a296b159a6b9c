// The hash over everything that the samples of a set consist of, for sets that are too large to be read while they are
// indexed (DataSetInfo::content_in_digest).
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "lockstep/data_set.hpp"

namespace lockstep::data {

/// SHA-256 over the samples in the order of their ids, as they are stored (DataSet::read_encoded, else read), without
/// their labels, which info().digest covers; for tokens, over every token. A folder, its tar and a packed file of it
/// have the same digest. `go_on` is called from time to time with the fraction of the set that is done, 0...1; if it
/// returns false, there is no result. Throws Error(data) for what cannot be read; a BadSample counts as no bytes.
[[nodiscard]] std::optional<std::string> content_digest(const DataSet& set, const std::function<bool(double)>& go_on);

/// A hash of what is at `path`, whatever settings it is read with: of the bytes of a file, or, unless `whole`, its size
/// and some of them; of the names and sizes below a folder; of the versions of objects of a store.
[[nodiscard]] std::string path_digest(const std::string& path, bool whole);

}  // namespace lockstep::data
