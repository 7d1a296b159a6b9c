#include "device/cpu/dnnl_call.hpp"

#include "device/threads.hpp"
#include "lockstep/error.hpp"

namespace lockstep::device {

DnnlContext::DnnlContext() : engine(dnnl::engine::kind::cpu, 0), stream(engine) {
  use_one_thread();
}

DnnlCall::DnnlCall(const DnnlContext& context, dnnl::primitive primitive,
                   const std::vector<std::pair<int, dnnl::memory::desc>>& arguments)
    : primitive_(std::move(primitive)) {
  for (const auto& [argument, description] : arguments) {
    if (description.get_size() == 0) continue;
    memories_.emplace_back(description, context.engine, nullptr);
    arguments_.push_back({argument, memories_.back().get()});
  }
}

void DnnlCall::set(int argument, const void* data) {
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    if (arguments_[i].arg == argument) memories_[i].set_data_handle(const_cast<void*>(data));
  }
}

void DnnlCall::run(const DnnlContext& context) {
  use_one_thread();
  const auto status = dnnl_primitive_execute(primitive_.get(), context.stream.get(),
                                             static_cast<int>(arguments_.size()), arguments_.data());
  LOCKSTEP_CHECK(status == dnnl_success, "oneDNN could not run a primitive");
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

DnnlCall make_reorder(const DnnlContext& context, const dnnl::memory::desc& from, const dnnl::memory::desc& to) {
  const dnnl::reorder::primitive_desc description(context.engine, from, context.engine, to, user_scratchpad());
  LOCKSTEP_CHECK(description.scratchpad_desc().get_size() == 0, "a reorder that needs scratch memory");
  return {context, dnnl::reorder(description), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}};
}

}  // namespace lockstep::device
