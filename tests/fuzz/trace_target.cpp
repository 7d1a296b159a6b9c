// Timelines of two ranks, as `lockstep trace merge` reads, judges and merges them.
#include "fuzz/support.hpp"
#include "observe/telemetry/diagnosis.hpp"
#include "observe/telemetry/trace_events.hpp"

using namespace lockstep;

namespace {

void check_rewritten(const telemetry::RankTrace& trace, const fuzz::Folder& folder) {
  auto alone = trace;
  alone.rank = 0;
  alone.ranks = 1;
  fuzz::require(telemetry::write_trace(folder.path(), alone).empty(), "a timeline can be written");
  const auto again = telemetry::read_traces(folder.path());
  fuzz::require(again.size() == 1 && again[0].spans.size() == trace.spans.size(), "a timeline keeps its spans");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Folder folder, other;
  std::string_view rest = fuzz::text_of(data, size);
  folder.put("rank-0.json", fuzz::take_file(rest));
  folder.put("rank-1.json", rest);
  std::vector<telemetry::RankTrace> traces;
  if (!fuzz::accepts([&] { traces = telemetry::read_traces(folder.path()); })) return 0;
  fuzz::insist("timelines can be judged and written", [&] {
    for (const auto& trace : traces) {
      for (const auto& span : trace.spans) fuzz::require(span.track >= 0, "a span stands in a track");
    }
    check_rewritten(traces.back(), other);
    for (auto& trace : traces) telemetry::align(trace);
    const auto critical = telemetry::critical_path(traces);
    if (critical.empty()) return;
    const std::string verdict = telemetry::diagnose(critical, traces).sentence;
    fuzz::require(!verdict.empty(), "there is a verdict");
    telemetry::write_merged_trace(folder / "merged.json", traces, critical, verdict);
  });
  return 0;
}
