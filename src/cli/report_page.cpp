#include "cli/report_page.hpp"

#include <fmt/format.h>

#include "cli/svg_chart.hpp"

namespace lockstep::cli {

namespace {

// The style of the report's page, light or dark according to the reader's system.

constexpr const char* kReportStyle = R"css(
:root { color-scheme: light dark; --paper: #fbfaf8; --card: #fff; --ink: #22252b; --quiet: #6d7280; --rule: #e6e3dd;
  --c0: #2f6fde; --c1: #d9542b; --c2: #2a9d6f; --c3: #8a55c8; --c4: #c99a13; --c5: #1aa3b8; --c6: #c8467f; --c7: #7b7f8a; }
@media (prefers-color-scheme: dark) { :root { --paper: #14161a; --card: #1c1f25; --ink: #e7e9ee; --quiet: #979eac;
  --rule: #2d323b; --c0: #7aa7ff; --c1: #ff8a65; --c2: #5fd3a2; --c3: #c29bf5; --c4: #e8c254; --c5: #5ccfe0;
  --c6: #f287b5; --c7: #a9aeb9; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1240px; padding: 36px 24px 64px; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 30px; line-height: 1.2; margin: 0; letter-spacing: -0.01em; }
h2 { font-size: 18px; margin: 40px 0 12px; }
p.about { color: var(--quiet); margin: 6px 0 24px; } .card p.about { margin-bottom: 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; }
.tile, figure, .card { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; }
.tile { padding: 12px 16px; } .tile b { display: block; font-size: 22px; font-weight: 600; }
.tile span, figcaption, th { color: var(--quiet); font-size: 13px; }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); gap: 14px; }
figure { margin: 0; padding: 12px 14px 8px; } figcaption { font-weight: 600; display: flex; flex-wrap: wrap; gap: 14px; }
.key { font-weight: 400; } .key i { display: inline-block; width: 10px; height: 10px; border-radius: 3px; margin-right: 5px;
  background: var(--c); }
svg { width: 100%; height: auto; display: block; margin-top: 6px; }
.grid { stroke: var(--rule); stroke-width: 1; } .tick { fill: var(--quiet); font-size: 11px; }
.end { text-anchor: end; } .middle { text-anchor: middle; }
.line { fill: none; stroke: var(--c); stroke-width: 1.8; stroke-linejoin: round; } .dot { fill: var(--c); }
.ring { fill: none; stroke: var(--c); stroke-width: 1.5; }
.faint { opacity: 0.3; stroke-width: 1; } td.best { font-weight: 600; }
.s0 { --c: var(--c0); } .s1 { --c: var(--c1); } .s2 { --c: var(--c2); } .s3 { --c: var(--c3); }
.s4 { --c: var(--c4); } .s5 { --c: var(--c5); } .s6 { --c: var(--c6); } .s7 { --c: var(--c7); }
.matrix svg { max-width: 620px; } .cell { fill: var(--c); }
.count { fill: var(--ink); font-size: 11px; text-anchor: middle; } .count.light { fill: #fff; }
h3 { font-size: 15px; margin: 20px 0 10px; } .tile img { width: 96px; image-rendering: pixelated; display: block;
  margin-bottom: 6px; border-radius: 4px; } .tile:has(img) b { font-size: 16px; } .tile span { display: block; overflow-wrap: anywhere; }
.bar { display: flex; height: 22px; border-radius: 6px; overflow: hidden; } .bar i { background: var(--c); }
.card { padding: 14px 16px; overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; } th, td { padding: 5px 14px 5px 0; border-bottom: 1px solid var(--rule);
  vertical-align: top; } tr:last-child :is(td, th) { border-bottom: 0; } td.n, th.n { text-align: right; }
pre { margin: 0; font: 12.5px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; white-space: pre-wrap;
  overflow-wrap: anywhere; }
summary { cursor: pointer; color: var(--quiet); }
@media (max-width: 560px) { body { padding: 20px 12px 40px; } .tick { font-size: 15px; } .card { padding: 10px; }
  th, td { padding-right: 9px; } }
@media print { body { padding: 0; } .tile, figure, .card { break-inside: avoid; } }
)css";

}  // namespace

std::string tile(const std::string& value, const std::string& name) {
  if (value.empty()) return "";
  return fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", escaped(value), escaped(name));
}

std::string page_of(const std::string& title, const std::string& about, const std::string& body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>{0}: lockstep</title><style>{1}</style></head><body>\n<h1>{0}</h1>\n"
      "<p class=\"about\">{2}</p>\n{3}</body></html>\n",
      escaped(title), kReportStyle, escaped(about), body);
}

}  // namespace lockstep::cli
