#include "lockstep/registry.hpp"
#include "lockstep/error.hpp"
#include "lockstep/op.hpp"

namespace lockstep {

void Kernel::recompute(const ForwardCall& /*call*/) {
  throw Error(ExitCode::internal, "this kernel cannot recompute its output");
}

void Kernel::backward(const BackwardCall& /*call*/) {
  throw Error(ExitCode::usage, "its kernel has no backward(); write one, or set OpDef::differentiable to false");
}

OpDef& OpRegistry::add(OpDef op) {
  require_whole("op '" + op.name + "'", op.infer ? "" : "infer");
  if (ops_.contains(op.name)) throw Error(ExitCode::usage, "the op '" + op.name + "' is registered twice");
  auto stored = std::make_unique<OpDef>(std::move(op));
  OpDef& reference = *stored;
  ops_.emplace(reference.name, std::move(stored));
  return reference;
}

void OpRegistry::add_kernel(const std::string& op, DeviceKind device, KernelFactory factory, bool takes_low_precision,
                            bool rounds_gradient) {
  const auto found = ops_.find(op);
  LOCKSTEP_CHECK(found != ops_.end(), "no op '" + op + "'");
  OpDef& def = *found->second;
  def.kernels[device] = std::move(factory);
  def.epilogues.erase(device);
  def.channels_last.erase(device);
  const auto set = [&](std::set<DeviceKind>& devices, bool does) {
    if (does) {
      devices.insert(device);
    } else {
      devices.erase(device);
    }
  };
  set(def.takes_low_precision, takes_low_precision);
  set(def.rounds_gradient, rounds_gradient);
}

const OpDef* OpRegistry::find(const std::string& name) const {
  const auto found = ops_.find(name);
  return found == ops_.end() ? nullptr : found->second.get();
}

const OpDef& OpRegistry::at(const std::string& name) const {
  const OpDef* op = find(name);
  LOCKSTEP_CHECK(op != nullptr, "no op '" + name + "'");
  return *op;
}

std::vector<const OpDef*> OpRegistry::all() const {
  std::vector<const OpDef*> list;
  for (const auto& [name, op] : ops_) list.push_back(op.get());
  return list;
}

}  // namespace lockstep
