#include "data/readers/view.hpp"

#include <span>

#include "core/digest.hpp"

namespace lockstep::data {
namespace {

class View : public DataSet {
 public:
  View(std::shared_ptr<const DataSet> whole, std::vector<std::int64_t> ids)
      : whole_(std::move(whole)), ids_(std::move(ids)), info_(whole_->info()) {
    info_.class_counts.assign(info_.class_names.size(), 0);
    for (const auto id : ids_) {
      const auto label = whole_->label(id);
      if (label >= 0 && label < static_cast<std::int64_t>(info_.class_counts.size())) {
        ++info_.class_counts[static_cast<std::size_t>(label)];
      }
    }
    Sha256 digest;
    digest.add(info_.digest);
    digest.add(std::as_bytes(std::span(ids_)));
    info_.digest = digest.hex();
  }

  [[nodiscard]] const DataSetInfo& info() const override { return info_; }
  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(ids_.size()); }
  void read(std::int64_t id, Sample& out) const override { whole_->read(at(id), out); }
  void read_variant(std::int64_t id, std::uint64_t variant, Sample& out) const override {
    whole_->read_variant(at(id), variant, out);
  }
  [[nodiscard]] bool read_encoded(std::int64_t id, std::vector<EncodedFeature>& out) const override {
    return whole_->read_encoded(at(id), out);
  }
  [[nodiscard]] std::string name(std::int64_t id) const override { return whole_->name(at(id)); }
  [[nodiscard]] std::int64_t label(std::int64_t id) const override { return whole_->label(at(id)); }
  [[nodiscard]] std::uint64_t bytes_read() const override { return whole_->bytes_read(); }

 private:
  [[nodiscard]] std::int64_t at(std::int64_t id) const { return ids_.at(static_cast<std::size_t>(id)); }
  std::shared_ptr<const DataSet> whole_;
  std::vector<std::int64_t> ids_;
  DataSetInfo info_;
};

}  // namespace

std::unique_ptr<DataSet> make_view(std::shared_ptr<const DataSet> whole, std::vector<std::int64_t> ids) {
  return std::make_unique<View>(std::move(whole), std::move(ids));
}

}  // namespace lockstep::data
