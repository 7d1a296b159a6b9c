// One function per kind of source. Each indexes and checks, and throws Error(data) that names the file; open() adds the
// source's place in the job.
#pragma once

#include <memory>

#include "data/open.hpp"

namespace lockstep::data {

[[nodiscard]] std::unique_ptr<DataSet> open_images(const SourceOptions& source, const IndexOptions& options);
[[nodiscard]] std::unique_ptr<DataSet> open_csv(const SourceOptions& source, const IndexOptions& options);
[[nodiscard]] std::unique_ptr<DataSet> open_idx(const SourceOptions& source, const IndexOptions& options);
[[nodiscard]] std::unique_ptr<DataSet> open_cifar(const SourceOptions& source, const IndexOptions& options);
[[nodiscard]] std::unique_ptr<DataSet> open_text(const SourceOptions& source, const IndexOptions& options);
[[nodiscard]] std::unique_ptr<DataSet> open_texts(const SourceOptions& source, const IndexOptions& options);
[[nodiscard]] std::unique_ptr<DataSet> open_tokens(const SourceOptions& source, const IndexOptions& options);
[[nodiscard]] std::unique_ptr<DataSet> open_table(const SourceOptions& source, const IndexOptions& options);
[[nodiscard]] std::unique_ptr<DataSet> open_packed(const SourceOptions& source, const IndexOptions& options);

// What data::foresee() says of sources of these kinds, which the functions above say of their samples, too: features,
// and the vocabulary of bytes.
[[nodiscard]] DataSetInfo foresee_cifar();
[[nodiscard]] DataSetInfo foresee_text(const SourceOptions& source);
[[nodiscard]] DataSetInfo foresee_texts(const SourceOptions& source);
[[nodiscard]] DataSetInfo foresee_tokens(const SourceOptions& source);

}  // namespace lockstep::data
