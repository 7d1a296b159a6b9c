#include "step/exec/part_links.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "core/round_up.hpp"
#include "lockstep/error.hpp"

namespace lockstep::exec {

namespace {

// Tags below these are used for agreements between ranks, tags above for checkpoints and the all-reduce.
constexpr int kFirstTag = 1 << 16, kEndOfTags = 1 << 18;

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

int PartLinks::tag(const Link& link, int number) const {
  const int tag = link.first_tag + number * tags_per_number;
  LOCKSTEP_CHECK(tag < kEndOfTags, "messages between parts have few numbers, however many micro-batches there are");
  return tag;
}

int default_in_flight(const std::vector<std::vector<int>>& ranks_of_part) {
  std::size_t after = 0, most = 1;
  for (std::size_t p = ranks_of_part.size(); p-- > 0;) {
    const std::size_t own = ranks_of_part[p].size();
    most = std::max(most, 1 + divide_up(after, own));
    after += own;
  }
  return static_cast<int>(std::max(most, ranks_of_part.size())) + 1;
}

PartLinks links_of(const std::vector<GraphPart>& parts, int own) {
  PartLinks links;
  const GraphPart& mine = parts[own];
  links.sent.resize(mine.boundary.sent.size());
  links.gradients.resize(mine.boundary.received.size());
  std::map<std::pair<int, int>, int> counts;  // of links from one part to another
  const auto next_tag = [&](int from, int to) {
    const int number = counts[{from, to}]++;
    links.tags_per_number = std::max(links.tags_per_number, number + 1);
    return kFirstTag + number;
  };
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const int reader = p;
    const GraphPart& part = parts[p];
    for (std::size_t i = 0; i < part.received_from.size(); ++i) {
      const auto& [from, index, term] = part.received_from[i];
      const PartLinks::Link link{from, part.graph.at(part.boundary.received[i].value).spec.bytes(),
                                 next_tag(from, reader)};
      if (reader == own) links.received.push_back(link);
      if (from == own) links.sent[index].push_back({reader, link.bytes, link.first_tag});
    }
    for (std::size_t a = 0; a < part.arrives_from.size(); ++a) {
      const auto& [from, index, term] = part.arrives_from[a];
      const PartLinks::Link link{from, part.graph.at(part.boundary.arrivals[a].value).spec.bytes(),
                                 next_tag(from, reader)};
      if (reader == own) links.arrivals.push_back(link);
      if (from != own) continue;
      auto& terms = links.gradients[index];
      terms.resize(std::max(terms.size(), term + 1));
      terms[term] = {reader, link.bytes, link.first_tag};
    }
  }
  return links;
}

std::vector<int> message_numbers(const std::vector<PartMessage>& messages) {
  struct Run {  // messages of one sender and one receiver, in the order of both
    std::size_t received = 0;
    int number = 0;
  };
  std::map<std::pair<int, int>, int> next;               // by rank and rank
  std::map<std::pair<int, int>, std::vector<Run>> runs;  // by worker and worker
  std::vector<std::size_t> by_sending(messages.size());
  std::iota(by_sending.begin(), by_sending.end(), std::size_t{0});
  std::sort(by_sending.begin(), by_sending.end(),
            [&](std::size_t a, std::size_t b) { return messages[a].sent < messages[b].sent; });
  std::vector<int> numbers(messages.size());
  for (const std::size_t m : by_sending) {
    const PartMessage& message = messages[m];
    auto& of_workers = runs[{message.sender, message.receiver}];
    auto run = std::find_if(of_workers.begin(), of_workers.end(),
                            [&](const Run& earlier) { return earlier.received < message.received; });
    if (run == of_workers.end()) run = of_workers.insert(run, {0, next[{message.from, message.to}]++});
    run->received = message.received;
    numbers[m] = run->number;
  }
  return numbers;
}

}  // namespace lockstep::exec
