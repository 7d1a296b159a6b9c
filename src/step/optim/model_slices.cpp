#include "step/optim/model_slices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "comm/transport/messages.hpp"
#include "core/round_up.hpp"
#include "lockstep/error.hpp"
#include "step/optim/parameter_units.hpp"

namespace lockstep::optim {

namespace {

constexpr int kParameterTag = 1 << 14;

using exec::Extent;

void append(std::vector<ModelSlices::Owned>& list, ModelSlices::Owned next) {
  if (!list.empty() && list.back().owner == next.owner && list.back().extent.end == next.extent.begin) {
    list.back().extent.end = next.extent.end;
  } else {
    list.push_back(next);
  }
}

}  // namespace

ModelSlices::ModelSlices(Communicator& group, const Graph& graph, const Program& program,
                         const comm::GradientBuckets& buckets, const Options& options)
    : group_(group),
      graph_(graph),
      hosts_(group.topology()),
      timeout_(options.timeout),
      owned_(owned_by(group.size(), graph, program, buckets)) {
  find_transfers();
  if (options.keeps_parameters) {
    map_memory(program, options);
  } else if (options.divides_parameters) {
    unit_of_ = parameter_units(graph_, program, options.unit_bytes);
  }
}

void ModelSlices::map_memory(const Program& program, const Options& options) {
  const std::size_t bytes = exec::TensorBlock::bytes_of(graph_, graph_.parameters);
  if (!options.divides_parameters || hosts_.count() == 1) {
    const bool is_first = hosts_.local_rank(group_.rank()) == 0;
    memory_ = comm::map_host_memory(group_,
                                    {.bytes = is_first ? std::max<std::size_t>(bytes, 64) : 64,
                                     .layout = fmt::format("{} bytes", bytes),
                                     .use = "parameters"},
                                    {"memory of parameters", 0, timeout_});
    return;
  }
  const std::vector<int> unit_of = parameter_units(graph_, program, options.unit_bytes);
  const int units = unit_of.empty() ? 0 : *std::max_element(unit_of.begin(), unit_of.end()) + 1;
  comm::FetchedMemoryOptions memory{.bytes = bytes,
                                    .units = std::vector<std::vector<comm::OwnedBytes>>(units),
                                    .kept = units_kept(options.workers, group_.topology().local_size(group_.rank())),
                                    .timeout = timeout_};
  const auto offsets = exec::TensorBlock::offsets_of(graph_, graph_.parameters);
  const auto byte_at = [](std::int64_t element) { return element * sizeof(float); };
  for (std::size_t p = 0; p < owned_.size(); ++p) {
    auto& unit = memory.units[unit_of[p]];
    for (const auto& [extent, owner] : owned_[p]) {
      unit.push_back({byte_at(offsets[p] + extent.begin), byte_at(offsets[p] + extent.end), owner});
    }
  }
  fetched_ = std::make_shared<comm::FetchedMemory>(group_, std::move(memory));
  fetched_parameters_ =
      std::make_unique<exec::FetchedParameters>(exec::FetchedParameters{*fetched_, unit_of, timeout_});
}

// All uses of a parameter have the same owners (exec::gradient_buckets), so one of them tells the owners.
std::vector<std::vector<ModelSlices::Owned>> ModelSlices::owned_by(int ranks, const Graph& graph,
                                                                   const Program& program,
                                                                   const comm::GradientBuckets& buckets) {
  std::vector<std::vector<comm::Slice>> slices;
  for (int b = 0; b < buckets.count(); ++b) slices.push_back(comm::slices_of(buckets, b, ranks));
  std::vector<std::vector<Owned>> all(graph.parameters.size());
  for (std::size_t s = 0; s < program.slots.size(); ++s) {
    const Slot& slot = program.slots[s];
    if (slot.kind != Slot::Kind::gradient) continue;
    std::vector<Owned> list;
    const auto [bucket, offset] = buckets.slots[s];
    for (const comm::Slice& slice : slices[bucket]) {
      const std::int64_t begin = std::max(slice.first - offset, std::int64_t{0}),
                         end = std::min(slice.first + slice.size - offset, slot.elements);
      if (begin < end) append(list, {{begin, end}, slice.owner});
    }
    auto& owned = all[slot.target];
    const bool same =
        std::equal(list.begin(), list.end(), owned.begin(), owned.end(),
                   [](const Owned& a, const Owned& b) { return a.extent == b.extent && a.owner == b.owner; });
    LOCKSTEP_CHECK(owned.empty() || same, "all uses of a parameter have the same owners");
    owned = std::move(list);
  }
  for (std::size_t p = 0; p < all.size(); ++p) {
    const std::int64_t elements = graph.at(graph.parameters[p]).spec.elements();
    if (all[p].empty() && elements > 0) {
      all[p].push_back({{0, elements}, static_cast<int>(p % ranks)});
    }
  }
  return all;
}

std::vector<std::vector<std::int64_t>> ModelSlices::foreign_bytes(const comm::Hosts& hosts, const Graph& graph,
                                                                  const Program& program,
                                                                  const comm::GradientBuckets& buckets,
                                                                  std::int64_t unit_bytes) {
  const std::vector<int> unit_of = parameter_units(graph, program, unit_bytes);
  const auto owned = owned_by(hosts.rank_count(), graph, program, buckets);
  std::vector<std::int64_t> all(unit_of.empty() ? 0 : *std::max_element(unit_of.begin(), unit_of.end()) + 1);
  std::vector foreign(hosts.count(), all);
  for (std::size_t p = 0; p < owned.size(); ++p) {
    const std::size_t unit = unit_of[p];
    for (const auto& [extent, owner] : owned[p]) {
      const std::int64_t bytes = (extent.end - extent.begin) * static_cast<std::int64_t>(sizeof(float));
      all[unit] += bytes;
      foreign[hosts.host_of(owner)][unit] -= bytes;
    }
  }
  for (auto& host : foreign) std::transform(host.begin(), host.end(), all.begin(), host.begin(), std::plus());
  return foreign;
}

// Tensors that are adjacent in the block and have one owner go in one message, including the gaps between them.
void ModelSlices::find_transfers() {
  trained_.resize(group_.size());
  frozen_.resize(trained_.size());
  const auto offsets = exec::TensorBlock::offsets_of(graph_, graph_.parameters);
  for (std::size_t p = 0; p < owned_.size(); ++p) {
    const Value& value = graph_.at(graph_.parameters[p]);
    for (const Owned& owned : owned_[p]) {
      auto& list = (value.frozen ? frozen_ : trained_)[owned.owner];
      const Extent next{offsets[p] + owned.extent.begin, offsets[p] + owned.extent.end};
      if (!list.empty() && whole_lines(list.back().end) == next.begin) {
        list.back().end = next.end;
      } else {
        list.push_back(next);
      }
    }
  }
}

int ModelSlices::owner(std::size_t parameter, std::int64_t first) const {
  const auto& list = owned_[parameter];
  const auto found = std::upper_bound(list.begin(), list.end(), first,
                                      [](std::int64_t at, const Owned& owned) { return at < owned.extent.end; });
  LOCKSTEP_CHECK(found != list.end(), "all of a parameter is owned");
  return found->owner;
}

std::vector<std::vector<Extent>> ModelSlices::own() const {
  std::vector<std::vector<Extent>> own(owned_.size());
  for (std::size_t p = 0; p < owned_.size(); ++p) {
    for (const Owned& owned : owned_[p]) {
      if (owned.owner == group_.rank()) own[p].push_back(owned.extent);
    }
  }
  return own;
}

exec::TensorBlock ModelSlices::make_parameters() const {
  if (!unit_of_.empty()) return make_state();
  if (!fetched_ && !memory_) return {graph_, graph_.parameters};
  auto memory = fetched_ ? std::shared_ptr<std::byte>(fetched_, fetched_->data())
                         : std::shared_ptr<std::byte>(memory_, memory_->block(0));
  return {graph_, graph_.parameters, own(), std::move(memory)};
}

exec::TensorBlock ModelSlices::make_state() const {
  return {graph_, graph_.parameters, own()};
}

void ModelSlices::gather_first_values(const exec::TensorBlock& parameters) const {
  const Operation operation{"first values of parameters", 0, timeout_};
  gather(parameters, frozen_, operation);
  gather(parameters, trained_, operation);
}

void ModelSlices::gather_updated(const exec::TensorBlock& parameters, std::uint64_t step) const {
  gather(parameters, trained_, {"all-gather of parameters", step, timeout_});
}

// No rank computes while another one writes: an update begins when all ranks have gathered the scalars of their step,
// and the next step when all have reached this point.
void ModelSlices::gather(const exec::TensorBlock& parameters, const Runs& runs, const Operation& operation) const {
  if (parameters.size() == 0) return;
  if (fetched_) {
    group_.barrier(operation);
    return fetched_->next_version();
  }
  const int own_host = hosts_.host_of(group_.rank());
  std::vector<std::unique_ptr<Transfer>> transfers;
  const auto for_each_message = [&](int owner, const auto& call) {
    float* const block = parameters.at(0).data();
    for (const Extent& run : runs[owner]) {
      comm::in_messages(std::as_writable_bytes(std::span(block + run.begin, block + run.end)), call);
    }
  };
  for (int owner = 0; owner < group_.size(); ++owner) {
    if (!hosts_.receives_from(group_.rank(), owner)) continue;
    for_each_message(owner, [&](auto bytes) { transfers.push_back(group_.receive(bytes, owner, kParameterTag)); });
  }
  for (int host = 0; host < hosts_.count(); ++host) {
    if (host == own_host) continue;
    const int leader = hosts_.leader(host, group_.rank());
    for_each_message(group_.rank(),
                     [&](auto bytes) { transfers.push_back(group_.send(bytes, leader, kParameterTag)); });
  }
  for (const auto& transfer : transfers) transfer->wait(operation);
  group_.barrier(operation);
}

void ModelSlices::gather_numbers(std::span<double> values, std::span<const int> owners, std::uint64_t step) const {
  std::vector<std::size_t> counts(group_.size());
  for (const int owner : owners) ++counts[owner];
  const std::size_t most = *std::max_element(counts.begin(), counts.end());
  std::vector<double> mine(most), all(most * counts.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < owners.size(); ++i) {
    if (owners[i] == group_.rank()) mine[next++] = values[i];
  }
  group_.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)),
                    {"norm of the gradient", step, timeout_});
  std::fill(counts.begin(), counts.end(), 0);
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const std::size_t owner = owners[i];
    values[i] = all[owner * most + counts[owner]++];
  }
}

}  // namespace lockstep::optim
