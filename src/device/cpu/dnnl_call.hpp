// A oneDNN primitive with its memory arguments, made once and run often. Running it allocates nothing here.
#pragma once

#include <dnnl.hpp>
#include <utility>
#include <vector>

namespace lockstep::device {

/// The engine and stream of one kernel. Primitives made with it are single-threaded.
struct DnnlContext {
  DnnlContext();
  dnnl::engine engine;
  dnnl::stream stream;
};

class DnnlCall {
 public:
  DnnlCall() = default;
  /// `arguments`: DNNL_ARG_... and the tensor's description. Empty descriptions are ignored.
  DnnlCall(const DnnlContext& context, dnnl::primitive primitive,
           const std::vector<std::pair<int, dnnl::memory::desc>>& arguments);

  /// Sets an argument's address for the next runs; arguments that were ignored are ignored here, too.
  void set(int argument, const void* data);
  void run(const DnnlContext& context);
  explicit operator bool() const { return bool(primitive_); }

 private:
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

/// Attributes with which the caller provides scratch memory (DNNL_ARG_SCRATCHPAD).
[[nodiscard]] dnnl::primitive_attr user_scratchpad();

/// Copies between two layouts: arguments DNNL_ARG_FROM, DNNL_ARG_TO.
[[nodiscard]] DnnlCall make_reorder(const DnnlContext& context, const dnnl::memory::desc& from,
                                    const dnnl::memory::desc& to);

}  // namespace lockstep::device
