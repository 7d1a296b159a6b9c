// MatrixExchange: moves directions and steps of matrices between the ranks of CPUs (MatrixTransfer), in place. What all
// ranks get goes once to each other host, whose leader forwards it.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/transport/topology.hpp"
#include "lockstep/communicator.hpp"
#include "step/exec/parameters.hpp"
#include "step/optim/matrix_makers.hpp"

namespace lockstep::optim {

class MatrixExchange {
 public:
  /// Begins to receive. All ranks of the group name the same transfers in the same order. `block`: by parameter, with
  /// the elements that this rank sends or receives. References must outlive it.
  MatrixExchange(Communicator& group, const comm::Hosts& hosts, std::vector<MatrixTransfer> transfers,
                 const exec::TensorBlock& block);
  /// Begins to send what comes from this rank of a parameter, which must not change until finish(). Any thread may call
  /// it, once for each parameter.
  void send(std::size_t parameter);
  /// The same of all parameters.
  void send_all();
  /// Returns when all has been sent and received.
  void finish(const Operation& operation);

 private:
  struct Received {
    std::size_t number = 0;  ///< of its transfer
    std::vector<std::unique_ptr<Transfer>> messages;
  };
  int source_of(const MatrixTransfer& transfer) const;
  void send(const MatrixTransfer& transfer, int to);
  /// Sends it to all who get it from this rank, as its origin or as their host's leader.
  void pass_on(const MatrixTransfer& transfer);

  Communicator& group_;
  const comm::Hosts& hosts_;
  std::vector<MatrixTransfer> transfers_;
  const exec::TensorBlock& block_;
  std::vector<Received> receives_;
  std::mutex mutex_;  // guards sends_
  std::vector<std::unique_ptr<Transfer>> sends_;
};

}  // namespace lockstep::optim
