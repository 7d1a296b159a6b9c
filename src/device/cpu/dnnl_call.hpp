// One oneDNN primitive with its memory arguments, made once and run often. A run allocates nothing here.
#pragma once

#include <dnnl.hpp>
#include <utility>
#include <vector>

namespace lockstep::device {

/// The engine and stream of one kernel. Primitives made under it are single-threaded.
struct DnnlContext {
  DnnlContext();
  dnnl::engine engine;
  dnnl::stream stream;
};

class DnnlCall {
 public:
  DnnlCall() = default;
  /// `arguments`: DNNL_ARG_... and the tensor's description. Empty descriptions are left out.
  DnnlCall(const DnnlContext& context, dnnl::primitive primitive,
           const std::vector<std::pair<int, dnnl::memory::desc>>& arguments);

  /// Where an argument lies in the next run; arguments that were left out are ignored.
  void set(int argument, const void* data);
  void run(const DnnlContext& context);
  explicit operator bool() const { return bool(primitive_); }

 private:
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

/// Attributes under which scratch memory is the caller's (DNNL_ARG_SCRATCHPAD).
[[nodiscard]] dnnl::primitive_attr user_scratchpad();

/// Copies between two layouts: arguments DNNL_ARG_FROM, DNNL_ARG_TO.
[[nodiscard]] DnnlCall make_reorder(const DnnlContext& context, const dnnl::memory::desc& from,
                                    const dnnl::memory::desc& to);

}  // namespace lockstep::device
