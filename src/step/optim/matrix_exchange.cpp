#include "step/optim/matrix_exchange.hpp"

#include <span>
#include <utility>

#include "comm/transport/messages.hpp"

namespace lockstep::optim {

namespace {

// Workers finish matrices in any order, and a leader forwards when it has received. So each matrix has a tag for what
// comes from its origin, and one for what a leader forwards.
constexpr int kFirstMatrixTag = (1 << 18) + (1 << 17), kTaggedMatrices = 1 << 16;

int tag_of(const MatrixTransfer& transfer, int source) {
  const int matrix = transfer.parameter % kTaggedMatrices;
  return kFirstMatrixTag + 2 * matrix + (source == transfer.from ? 0 : 1);
}

}  // namespace

MatrixExchange::MatrixExchange(Communicator& group, const comm::Hosts& hosts, std::vector<MatrixTransfer> transfers,
                               const exec::TensorBlock& block)
    : group_(group), hosts_(hosts), transfers_(std::move(transfers)), block_(block) {
  for (std::size_t i = 0; i < transfers_.size(); ++i) {
    const MatrixTransfer& transfer = transfers_[i];
    const bool is_for_this = transfer.to == group_.rank() || transfer.to == MatrixTransfer::kAll;
    if (transfer.from == group_.rank() || !is_for_this) continue;
    Received& next = receives_.emplace_back(Received{.number = i, .messages = {}});
    const int source = source_of(transfer);
    comm::in_messages(std::as_writable_bytes(block_.at(transfer.parameter, transfer.extent)), [&](auto bytes) {
      next.messages.push_back(group_.receive(bytes, source, tag_of(transfer, source)));
    });
  }
}

int MatrixExchange::source_of(const MatrixTransfer& transfer) const {
  const int host = hosts_.host_of(group_.rank());
  if (transfer.to != MatrixTransfer::kAll || hosts_.host_of(transfer.from) == host) return transfer.from;
  return hosts_.receives_from(group_.rank(), transfer.from) ? transfer.from : hosts_.leader(host, transfer.from);
}

void MatrixExchange::send(const MatrixTransfer& transfer, int to) {
  comm::in_messages(std::as_bytes(block_.at(transfer.parameter, transfer.extent)), [&](auto bytes) {
    auto message = group_.send(bytes, to, tag_of(transfer, group_.rank()));
    const std::scoped_lock lock(mutex_);
    sends_.push_back(std::move(message));
  });
}

void MatrixExchange::pass_on(const MatrixTransfer& transfer) {
  const int rank = group_.rank(), own_host = hosts_.host_of(rank);
  const bool is_origin = transfer.from == rank;
  if (transfer.to != MatrixTransfer::kAll) {
    if (is_origin) send(transfer, transfer.to);
    return;
  }
  if (!is_origin && !hosts_.receives_from(rank, transfer.from)) return;
  for (int host = 0; is_origin && host < hosts_.count(); ++host) {
    if (host != own_host) send(transfer, hosts_.leader(host, rank));
  }
  for (const int local : hosts_.ranks(own_host)) {
    if (local != rank) send(transfer, local);
  }
}

void MatrixExchange::send(std::size_t parameter) {
  for (const MatrixTransfer& transfer : transfers_) {
    if (transfer.parameter == parameter && transfer.from == group_.rank()) pass_on(transfer);
  }
}

void MatrixExchange::send_all() {
  for (const MatrixTransfer& transfer : transfers_) {
    if (transfer.from == group_.rank()) pass_on(transfer);
  }
}

void MatrixExchange::finish(const Operation& operation) {
  for (const Received& received : receives_) {
    for (const auto& message : received.messages) message->wait(operation);
    pass_on(transfers_[received.number]);
  }
  for (const auto& message : sends_) message->wait(operation);
}

}  // namespace lockstep::optim
