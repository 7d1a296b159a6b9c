// The cells of lstm and gru: one step of one unit, forward and backward. F is float, or the vectors of
// device/cpu/lanes.hpp. x and h are what a gate gets of the input and of the unit's layer a step before, biases
// included; the gates' order and the equations are PyTorch's.
//
// A cell keeps kKept values of each step for backward. `before` is what it remembers of the step before: LSTM's kept
// cell state, GRU's output; 0 at the first step. The gradient of that is handed from a step to the one before in
// `carry`.
#pragma once

#include "device/float_math.hpp"

namespace lockstep::ops {

/// sigmoid'(x), given y = sigmoid(x), times the gradient of y; and the same of tanh.
template <class F>
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F through_sigmoid(const F& y, const F& dy) {
  return dy * (y * (1.0F - y));
}
template <class F>
LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE F through_tanh(const F& y, const F& dy) {
  return dy * (1.0F - y * y);
}

/// Hochreiter and Schmidhuber, "Long short-term memory", 1997; with the forget gate of Gers and others, 2000. Gates:
/// input, forget, cell, output. Kept: these, and the cell state.
struct LstmCell {
  static constexpr int kGates = 4, kKept = 5, kCost = 150, kGradientCost = 60;
  static constexpr bool kRemembersOutput = false;
  static constexpr int kMemory = 4;             ///< which kept value `before` is of
  static constexpr bool kSameGradients = true;  ///< dx and dh

  template <class F>
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void forward(const F* x, const F* h, const F& before, F* kept, F& y) {
    kept[0] = device::vector_sigmoid(F(x[0] + h[0]));
    kept[1] = device::vector_sigmoid(F(x[1] + h[1]));
    kept[2] = device::vector_tanh(F(x[2] + h[2]));
    kept[3] = device::vector_sigmoid(F(x[3] + h[3]));
    kept[4] = kept[1] * before + kept[0] * kept[2];
    y = kept[3] * device::vector_tanh(kept[4]);
  }

  /// `carry`: the gradient of this step's cell state from later steps; becomes that of the one before.
  template <class F>
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void backward(const F* kept, const F& before, const F& dy, F& carry,
                                                            F* dx, F* /*dh*/) {
    const F shown = device::vector_tanh(kept[4]);
    const F dc = carry + through_tanh(shown, F(dy * kept[3]));
    dx[0] = through_sigmoid(kept[0], F(dc * kept[2]));
    dx[1] = through_sigmoid(kept[1], F(dc * before));
    dx[2] = through_tanh(kept[2], F(dc * kept[0]));
    dx[3] = through_sigmoid(kept[3], F(dy * shown));
    carry = dc * kept[1];
  }
};

/// Cho and others, "Learning phrase representations using RNN encoder-decoder", 2014, with the reset gate after the
/// product, as in cuDNN and PyTorch (Keras's reset_after). Gates: reset, update, new. Kept: these, and h[2].
struct GruCell {
  static constexpr int kGates = 3, kKept = 4, kCost = 110, kGradientCost = 30;
  static constexpr bool kRemembersOutput = true;
  static constexpr int kMemory = -1;
  static constexpr bool kSameGradients = false;

  template <class F>
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void forward(const F* x, const F* h, const F& before, F* kept, F& y) {
    kept[0] = device::vector_sigmoid(F(x[0] + h[0]));
    kept[1] = device::vector_sigmoid(F(x[1] + h[1]));
    kept[2] = device::vector_tanh(F(x[2] + kept[0] * h[2]));
    kept[3] = h[2];
    y = kept[2] + kept[1] * (before - kept[2]);
  }

  /// `carry`: the part of the output's gradient that later steps pass on past their gates; joins dy.
  template <class F>
  static LOCKSTEP_HOST_DEVICE LOCKSTEP_INLINE void backward(const F* kept, const F& before, const F& dy, F& carry,
                                                            F* dx, F* dh) {
    const F all = dy + carry;
    dx[2] = through_tanh(kept[2], F(all * (1.0F - kept[1])));
    dx[1] = through_sigmoid(kept[1], F(all * (before - kept[2])));
    dx[0] = through_sigmoid(kept[0], F(dx[2] * kept[3]));
    dh[0] = dx[0];
    dh[1] = dx[1];
    dh[2] = dx[2] * kept[0];
    carry = all * kept[1];
  }
};

}  // namespace lockstep::ops
