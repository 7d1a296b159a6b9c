// The report of a process: lines of fields separated by tabs.
//
//   problem <times> <text>
//   kernel <launches> <instructions of lanes> <executed at least once: a digit 0 or 1 per instruction> <name>
//   launch, library: see Costs
//   lost <address in the program of the lost wait> <of its caller> ...
//   works <graph launches> <copies> <waits for events that order anything>
#include <fmt/format.h>
#include <fmt/os.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdlib>

#include "cuda/interpreter/machine.hpp"

namespace lockstep::ptx {

void Machine::write_report() const {
  const char* const folder = std::getenv("INTERPRETED_GPU_REPORT");
  if (folder == nullptr || kernels.empty()) return;
  auto file = fmt::output_file(fmt::format("{}/{}.report", folder, getpid()));
  for (const auto& [what, problem] : problems.all()) file.print("problem\t{}\t{}\n", problem.times, problem.first);
  for (const auto& [name, kernel] : kernels) {
    if (kernel.counts.launches == 0) continue;
    std::string executed;
    for (std::size_t i = 0; i + 1 < kernel.counts.hits.size(); ++i) executed += kernel.counts.hits[i] > 0 ? '1' : '0';
    file.print("kernel\t{}\t{}\t{}\t{}\n", kernel.counts.launches, kernel.counts.instructions, executed, name);
  }
  if (costs != nullptr) {
    for (const std::string& line : costs->lines()) file.print("{}\n", line);
  }
  if (!lost_from_.empty()) file.print("lost\t{}\n", fmt::join(lost_from_, "\t"));
  file.print("works\t{}\t{}\t{}\n", graph_launches, copies, waits);
}

}  // namespace lockstep::ptx
