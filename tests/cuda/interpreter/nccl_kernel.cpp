#include "cuda/interpreter/nccl_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

namespace lockstep::ptx {

namespace {

u32 part_of(std::size_t call) {
  return static_cast<u32>(call + 1);
}

bool fits(const Frame& expected, const Frame& found) {
  return expected.kind == found.kind && expected.number == found.number && expected.root == found.root &&
         expected.count == found.count;
}

}  // namespace

GroupKernel::GroupKernel(std::shared_ptr<NcclCommunicator> communicator, std::vector<NcclCall> calls, u64 group,
                         u64 collective)
    : communicator_(std::move(communicator)),
      calls_(std::move(calls)),
      group_(group),
      collective_(collective),
      terms_(calls_.size()) {}

bool GroupKernel::run(LibraryMemory& memory) {
  NcclCommunicator& here = *communicator_;
  if (here.phase_ == NcclCommunicator::Phase::aborted) return true;
  const auto is_of_this = [&](const std::optional<NcclFault>& fault) { return fault && fault->group == group_; };
  if (is_of_this(here.hangs_) || is_of_this(here.fails_)) return false;
  if (!std::exchange(begun_, true)) begin(memory);
  here.each_other([&](int other) { here.link(other).go_on(); });
  here.look_for_lost_peers();
  std::set<int> waits;  // data from one rank arrive in order
  std::erase_if(awaited_, [&](const Awaited& one) {
    if (stuck_ || waits.contains(one.from)) return false;
    if (take(memory, one)) return true;
    waits.insert(one.from);
    return false;
  });
  if (stuck_ || !awaited_.empty() || !all_taken()) return false;
  for (std::size_t call = 0; call < calls_.size(); ++call) {
    if (calls_[call].kind == FrameKind::sum) add(memory, call);
  }
  here.groups_done_ = group_;
  return true;
}

void GroupKernel::begin(LibraryMemory& memory) {
  for (std::size_t call = 0; call < calls_.size(); ++call) begin(memory, call);
}

void GroupKernel::begin(LibraryMemory& memory, std::size_t call) {
  const NcclCall& one = calls_[call];
  NcclCommunicator& here = *communicator_;
  const std::size_t bytes = one.count * sizeof(float);
  Frame frame{.kind = one.kind, .count = one.count, .bytes = bytes};
  if (one.kind != FrameKind::message) frame.number = collective_++;
  if (one.kind == FrameKind::broadcast) frame.root = static_cast<u32>(one.other);
  const bool sends = one.kind == FrameKind::broadcast ? one.other == here.rank() : one.from != nullptr;
  const u8* const from = sends ? memory.reads(one.name, part_of(call), one.from, bytes) : nullptr;
  if (sends && from == nullptr) {
    stuck_ = true;  // the GPU is broken
    return;
  }
  if (one.kind == FrameKind::message) {
    if (sends) send(one.other, frame, from);
    if (!sends) awaited_.push_back({call, one.other, frame});
    return;
  }
  if (sends) here.each_other([&](int other) { send(other, frame, from); });
  if (one.kind == FrameKind::broadcast) {
    if (!sends) awaited_.push_back({call, one.other, frame});
  } else {
    here.each_other([&](int other) { awaited_.push_back({call, other, frame}); });
  }
  if (one.kind == FrameKind::sum) {
    terms_[call].resize(static_cast<std::size_t>(here.ranks()));
    auto& own = terms_[call][static_cast<std::size_t>(here.rank())];
    own.resize(one.count);
    std::memcpy(own.data(), from, bytes);
  }
}

void GroupKernel::send(int to, const Frame& frame, const u8* bytes) {
  Link& link = communicator_->link(to);
  link.send(frame, bytes);
  sent_.push_back({to, link.sent()});
}

bool GroupKernel::take(LibraryMemory& memory, const Awaited& awaited) {
  NcclCommunicator& here = *communicator_;
  Link& link = here.link(awaited.from);
  if (link.next() == nullptr) return false;
  if (const Frame& found = link.next()->frame; !fits(awaited.frame, found)) {
    cudaInterpreterProblem(fmt::format("NCCL: rank {} expects {} from rank {}, and finds {}", here.rank(),
                                       awaited.frame.text(), awaited.from, found.text()));
    stuck_ = true;
    return false;
  }
  const auto arrived = link.take();
  const NcclCall& call = calls_[awaited.call];
  const std::size_t bytes = arrived->bytes.size();
  if (call.kind == FrameKind::sum) {
    auto& term = terms_[awaited.call][static_cast<std::size_t>(awaited.from)];
    term.resize(call.count);
    std::memcpy(term.data(), arrived->bytes.data(), bytes);
    return true;
  }
  u8* to = static_cast<u8*>(call.to);
  if (call.kind == FrameKind::gather) to += static_cast<std::size_t>(awaited.from) * bytes;
  u8* const found = memory.writes(call.name, part_of(awaited.call), to, bytes);
  if (found == nullptr) {
    stuck_ = true;
    return false;
  }
  std::memcpy(found, arrived->bytes.data(), bytes);
  return true;
}

// In the order of ranks, on all ranks: NCCL specifies no order, but its sums are equal on all ranks.
void GroupKernel::add(LibraryMemory& memory, std::size_t call) {
  std::vector<float> sum = terms_[call][0];
  for (std::size_t rank = 1; rank < terms_[call].size(); ++rank) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += terms_[call][rank][i];
  }
  const std::size_t bytes = sum.size() * sizeof(float);
  if (u8* const to = memory.writes(calls_[call].name, part_of(call), calls_[call].to, bytes)) {
    std::memcpy(to, sum.data(), bytes);
  }
}

bool GroupKernel::all_taken() const {
  return std::all_of(sent_.begin(), sent_.end(),
                     [&](const Sent& one) { return communicator_->link(one.to).taken() >= one.number; });
}

}  // namespace lockstep::ptx
