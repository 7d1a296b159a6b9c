// Data sets: numbered samples, each a list of named tensors. Derive from DataSet for a reader of your own, and add it
// to a registry; the job file then knows it by its name.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/attributes.hpp"
#include "lockstep/augment.hpp"
#include "lockstep/error.hpp"
#include "lockstep/registry.hpp"
#include "lockstep/tensor.hpp"

namespace lockstep {

/// One named tensor of every sample, without the batch dimension.
struct Feature {
  enum class Kind : std::uint8_t {
    image,    ///< u8 [height, width, channels]; if shapes differ between samples, the shape is {-1, -1, c}
    label,    ///< i32 []
    tokens,   ///< i32 [length]
    tensor,   ///< anything else, passed through as it is
    columns,  ///< f64 (or f32) [elements of DataSetInfo::columns], a row of a table, or [rows, elements], a window of
              ///< rows; NaN: missing. A step gets f32
    mask,     ///< u8 [height, width, 1]: of each pixel of the sample's first image the class, a number of `classes`, or
              ///< kIgnoredPixel. Augmentation moves it with the image; a step gets i32 [height, width]
    weight,   ///< f32 [], at least 0: how much the sample's loss counts in training; it does not feed the model
  };
  std::string name;  ///< "image", "label", "left"
  Kind kind = Kind::tensor;
  TensorSpec spec;
  std::vector<std::string> classes = {};  ///< of a mask, and of a label that is one of several targets: what its
                                          ///< numbers stand for; of numbers of a table to predict: their columns
  std::vector<double> offsets = {};  ///< of numbers to predict, each less its offset, so that fp32 has digits left for
                                     ///< how they differ; empty: 0
};

/// In masks: a pixel that counts neither in the loss nor in metrics.
inline constexpr std::uint8_t kIgnoredPixel = 255;

/// The feature, i32 [], that says how many of a sample's tokens are a text's; the others are padding.
inline constexpr std::string_view kLength = "length";

/// A column of a table. A column of numbers is one element of the feature; a column of categories is one element for
/// each category, which is 1 for the row's own. If values are missing, one more element is 1 for those.
struct Column {
  std::string name;
  std::vector<std::string> categories;  ///< empty: numbers
  bool missing = false;                 ///< whether some value is missing
  bool dates = false;                   ///< days since 1970-01-01, with the time of the day as a fraction
  std::int64_t elements() const {
    return (categories.empty() ? 1 : static_cast<std::int64_t>(categories.size())) + (missing ? 1 : 0);
  }
};

/// Of a time series: a sample is a window of successive rows of a table, feature `features` [rows, elements], and what
/// is to be predicted of it are targets of rows behind it.
struct RowWindow {
  std::int64_t rows = 0;             ///< 0: each row is a sample
  std::vector<std::int64_t> ahead;   ///< of which rows the targets are, counted from the window's last row; ascending
  std::vector<std::string> targets;  ///< their columns. A feature of several numbers has those of one column together
  std::string series;                ///< the column that says which series a row belongs to; empty: there is one series
  std::string time;                  ///< the column that says when it was; empty: the rows are in order
  bool operator==(const RowWindow&) const = default;
};

/// Of windows of tokens: those that are hidden, and predicted.
struct MaskedTokens {
  double share = 0;         ///< 0: none; the next token is predicted
  double span = 1;          ///< how many are hidden beside each other, on average
  std::int64_t token = -1;  ///< that stands for them; -1: one more at the end of the vocabulary
  /// Whether the vocabulary has one token more.
  bool adds_token() const { return share > 0 && token < 0; }
};

/// What indexing found out, before step 0.
struct DataSetInfo {
  std::string format;  ///< "images in class folders", "IDX", "digits (synthetic)"
  std::string source;  ///< path as the job gave it
  std::vector<Feature> features;
  std::vector<std::string> class_names;    ///< empty: not a classification set
  std::vector<std::int64_t> class_counts;  ///< by class, over all samples
  std::int64_t vocabulary = 0;             ///< token sets: number of distinct tokens; 0: not known
  std::vector<std::string> token_text;     ///< text split into characters: what each token stands for, by number
  std::string tokenizer;                   ///< byte-pair encoding: the text of its tokenizer.json; empty: none
  MaskedTokens masked;                     ///< windows of tokens
  std::vector<Column> columns;             ///< tables: in the order of their elements
  RowWindow window;                        ///< tables
  std::vector<double> mean, stddev;        ///< if the source knows them, else empty: of images by channel, on the scale
                                           ///< 0...1; of windows of rows by element, each row counted once
  std::vector<std::string> skipped;        ///< samples that were found bad at indexing: "train/cat/7.jpg: truncated
                                           ///< JPEG"
  std::vector<std::string> warnings;       ///< about things that are allowed but rarely intended; shown at the start of
                                           ///< a run
  std::string digest;  ///< SHA-256 that identifies the samples (names, sizes, labels, content where cheap)
  /// Whether the digest covers every byte of the samples. If not, training hashes them in the background and compares
  /// the hosts before the first checkpoint.
  bool content_in_digest = true;
};

/// Thrown by read() for a sample whose bytes could be read but cannot be decoded. It must depend on the bytes alone, so
/// that it is the same on every rank: with `data.bad_samples: replace`, another sample is used instead.
class BadSample : public Error {
 public:
  explicit BadSample(const std::string& message) : Error(ExitCode::data, message) {}
};

using Sample = std::vector<NamedTensor>;  ///< in order of DataSetInfo::features

/// A feature as its source stores it: `file`, a whole JPEG or PNG file, if `is_file`; else `tensor`.
struct EncodedFeature {
  bool is_file = false;
  std::vector<std::byte> file;
  Tensor tensor;
};

/// Const members are thread-safe: several threads call them concurrently. Ids are 0 ... size() - 1.
class DataSet {
 public:
  virtual ~DataSet() = default;
  virtual const DataSetInfo& info() const = 0;
  virtual std::int64_t size() const = 0;
  /// Decodes sample `id` into `out`, reusing its memory where shapes allow. Throws Error(data) that names the file and
  /// what is wrong with it: BadSample if its bytes are at fault.
  virtual void read(std::int64_t id, Sample& out) const = 0;
  /// The same but for images, whose tensors it may leave as they are: for who needs only the rest.
  virtual void read_without_images(std::int64_t id, Sample& out) const { read(id, out); }
  /// The variant of sample `id` for the epoch that `variant` identifies: windows of text start at an offset that
  /// depends on `variant`. 0 means the fixed form, which read() returns and evaluation sees. Other sets have one form
  /// and ignore it.
  virtual void read_variant(std::int64_t id, std::uint64_t variant, Sample& out) const {
    (void)variant;
    read(id, out);
  }
  /// Overwrites `out` with the sample as it is stored, in order of the features, so that packing need not encode it
  /// again. Returns false if the source has nothing better than read().
  virtual bool read_encoded(std::int64_t id, std::vector<EncodedFeature>& out) const {
    (void)id, (void)out;
    return false;
  }
  /// The sample's name, for messages and for lists that split a set: "train/cat/7.jpg"; "#7" if it has none.
  virtual std::string name(std::int64_t id) const { return "#" + std::to_string(id); }
  /// The class of sample `id` without decoding the rest; -1 if it has none.
  virtual std::int64_t label(std::int64_t id) const {
    (void)id;
    return -1;
  }
  /// Bytes read from files so far by this process, for the end report.
  virtual std::uint64_t bytes_read() const { return 0; }
};

/// A source of a job that names a reader.
struct ReaderRequest {
  std::vector<std::string> paths;  ///< with globs expanded; at least one
  Attributes attributes;           ///< complete
  /// validation, test and what is predicted: the training set's, whose classes and columns the set must have; else null
  const DataSetInfo* like = nullptr;
};

/// A reader that a job names as it names a built-in kind: `train: {libsvm: {path: a.libsvm, features: 3}}`. Besides its
/// own attributes it has `path`, `count` and `weights`, which are lockstep's matter.
class ReaderDef {
 public:
  static constexpr const char* kNoun = "reader";
  std::string name;
  std::string doc;  ///< one line
  int order = 100;  ///< position in messages and on pages; equal ones are sorted by name
  std::vector<AttributeSpec> attributes;
  std::vector<AttributeCheck> checks;
  /// Indexes and checks. Every rank calls it. Throws Error(data) that names the file and what is wrong with it.
  std::function<std::unique_ptr<DataSet>(const ReaderRequest&)> open;
  const char* missing() const { return open ? "" : "open"; }
};

using ReaderRegistry = Registry<ReaderDef>;

/// What of a job's data may be one's own.
struct DataRegistries {
  AugmentRegistry augmentations;
  ReaderRegistry readers;
};

/// Data sets of your own, instead of the job's sources; a null one is opened from the job.
struct DataSets {
  std::shared_ptr<const DataSet> train, validation;
};

}  // namespace lockstep
