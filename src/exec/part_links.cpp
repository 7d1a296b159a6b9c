#include "exec/part_links.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.hpp"

namespace lockstep::exec {

namespace {

// Tags below these are used for agreements between ranks, tags above for checkpoints and the all-reduce.
constexpr int kFirstTag = 1 << 16, kEndOfTags = 1 << 18, kTags = kEndOfTags - kFirstTag;

}  // namespace

std::size_t PartLinks::bytes_sent() const {
  std::size_t bytes = 0;
  for (const auto* list : {&sent, &gradients}) {
    for (const auto& links : *list) {
      for (const Link& link : links) bytes += link.bytes;
    }
  }
  return bytes;
}

int PartLinks::tag(const Link& link, int micro_batch) const {
  return kFirstTag + micro_batch % (kTags / links_of_model) * links_of_model + link.number;
}

PartLinks links_of(const std::vector<GraphPart>& parts, int own, int micro_batches) {
  PartLinks links;
  const GraphPart& mine = parts[static_cast<std::size_t>(own)];
  links.sent.resize(mine.boundary.sent.size());
  links.gradients.resize(mine.boundary.received.size());
  const auto next = [&] { return links.links_of_model++; };
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const int reader = static_cast<int>(p);
    const GraphPart& part = parts[p];
    for (std::size_t i = 0; i < part.received_from.size(); ++i) {
      const auto& [from, index, term] = part.received_from[i];
      const PartLinks::Link link{from, part.graph.at(part.boundary.received[i].value).spec.bytes(), next()};
      if (reader == own) links.received.push_back(link);
      if (from == own) links.sent[index].push_back({reader, link.bytes, link.number});
    }
    for (std::size_t a = 0; a < part.arrives_from.size(); ++a) {
      const auto& [from, index, term] = part.arrives_from[a];
      const PartLinks::Link link{from, part.graph.at(part.boundary.arrivals[a].value).spec.bytes(), next()};
      if (reader == own) links.arrivals.push_back(link);
      if (from != own) continue;
      auto& terms = links.gradients[index];
      terms.resize(std::max(terms.size(), term + 1));
      terms[term] = {reader, link.bytes, link.number};
    }
  }
  if (links.links_of_model > kTags / micro_batches) {
    throw Error(
        ExitCode::configuration,
        fmt::format("job.parallel.parts: expected at most {} values between parts with {} micro-batches, found {}; "
                    "cut into fewer parts, or where fewer values cross",
                    kTags / micro_batches, micro_batches, links.links_of_model));
  }
  return links;
}

}  // namespace lockstep::exec
