// Data sets: numbered samples, each a set of named tensors. Derive from DataSet for a reader of your own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/error.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep {

/// One named tensor of every sample, without the batch dimension.
struct Feature {
  enum class Kind : std::uint8_t {
    image,   ///< u8 [height, width, channels]; shapes may differ between samples: then shape is {-1, -1, c}
    label,   ///< i32 []
    tokens,  ///< i32 [length]
    tensor,  ///< anything else, passed through as it is
  };
  std::string name;  ///< "image", "label", "left"
  Kind kind = Kind::tensor;
  TensorSpec spec;
};

/// What indexing found, before step 0.
struct DataSetInfo {
  std::string format;  ///< "images in class folders", "IDX", "digits (synthetic)"
  std::string source;  ///< path as the job gave it
  std::vector<Feature> features;
  std::vector<std::string> class_names;    ///< empty: not a classification set
  std::vector<std::int64_t> class_counts;  ///< by class, over all samples
  std::int64_t vocabulary = 0;             ///< token sets: number of distinct tokens; 0: not known
  std::vector<std::string> token_text;     ///< text of characters: what each token stands for, by number
  std::vector<double> mean, stddev;        ///< of images, by channel, 0...1, where the source knows them; else empty
  std::vector<std::string> skipped;        ///< "train/cat/7.jpg: truncated JPEG", bad when the set was indexed
  std::vector<std::string> warnings;       ///< what is allowed, but rarely meant; shown at the start of a run
  std::string digest;  ///< sha256 over what the samples are (names, sizes, labels, content where cheap)
  /// Whether the digest covers every byte of the samples. Where it does not, training hashes them in the background and
  /// compares the hosts before the first checkpoint.
  bool content_in_digest = true;
};

/// What read() throws for a sample whose bytes were read but make no sample. It must depend on the bytes alone, so that
/// every rank sees the same: with `data.bad_samples: replace` another sample takes its place.
class BadSample : public Error {
 public:
  explicit BadSample(const std::string& message) : Error(ExitCode::data, message) {}
};

using Sample = std::vector<NamedTensor>;  ///< in order of DataSetInfo::features

/// A feature as its source stores it. `file`: a whole JPEG or PNG file; else `tensor`'s bytes are the value.
struct EncodedFeature {
  bool is_file = false;
  std::vector<std::byte> file;
  Tensor tensor;
};

/// Contract: const members are called by several threads at once. Ids are 0 ... size() - 1.
class DataSet {
 public:
  virtual ~DataSet() = default;
  [[nodiscard]] virtual const DataSetInfo& info() const = 0;
  [[nodiscard]] virtual std::int64_t size() const = 0;
  /// Decodes sample `id` into `out`, reusing its memory where shapes allow. Throws Error(data) that names the
  /// file and what is wrong with it; BadSample, where that is what its bytes hold.
  virtual void read(std::int64_t id, Sample& out) const = 0;
  /// Sample `id` as the epoch keyed by `variant` has it: windows of text start at an offset that `variant` chooses.
  /// 0, as in read(), is the fixed form that evaluation sees. Other sets have one form and ignore it.
  virtual void read_variant(std::int64_t id, std::uint64_t variant, Sample& out) const {
    (void)variant;
    read(id, out);
  }
  /// Overwrites `out` with the sample as it is stored, in order of the features, so that it can
  /// be packed without a second encoding. false: the source has nothing better than read().
  [[nodiscard]] virtual bool read_encoded(std::int64_t id, std::vector<EncodedFeature>& out) const {
    (void)id, (void)out;
    return false;
  }
  /// The sample's name, for messages and for lists that split a set: "train/cat/7.jpg"; "#7" where it has none.
  [[nodiscard]] virtual std::string name(std::int64_t id) const { return "#" + std::to_string(id); }
  /// The class of sample `id` without decoding the rest; -1 where there is none.
  [[nodiscard]] virtual std::int64_t label(std::int64_t id) const {
    (void)id;
    return -1;
  }
  /// Bytes read from files so far by this process, for the end report.
  [[nodiscard]] virtual std::uint64_t bytes_read() const { return 0; }
};

/// Data sets of your own, instead of the job's sources; null ones are opened as the job says.
struct DataSets {
  std::shared_ptr<const DataSet> train, validation;
};

}  // namespace lockstep
