#include "run/plan/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "core/words.hpp"
#include "graph/blocks.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/text.hpp"

namespace lockstep::plan {

namespace {

std::string how_cut(const PlacedModel& placed) {
  return telemetry::counted(std::ssize(placed.parts), "part");
}

bool is_number_of_parts(const Choice& choice) {
  return choice.parallel.cuts.empty() && !choice.parallel.branches;
}

bool same(const PlacedModel& a, const PlacedModel& b) {
  return is_number_of_parts(a.choice) && is_number_of_parts(b.choice) && a.parts.size() == b.parts.size() &&
         a.choice.recompute == b.choice.recompute && a.choice.sharding() == b.choice.sharding() &&
         a.choice.parallel.in_flight == b.choice.parallel.in_flight;
}

/// The node of the whole graph that takes longest per micro-batch, forward and backward, and its fraction of the total.
std::pair<std::string, double> longest_layer(const SearchSetup& setup) {
  const auto& nodes = setup.time.ranks.front().nodes;
  double sum = 0, most = 0;
  std::string name;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const double seconds = nodes[n].forward + nodes[n].backward;
    sum += seconds;
    if (seconds > most) {
      most = seconds;
      name = setup.model.graph.nodes[n].name;
    }
  }
  return {name, sum > 0 ? most / sum : 0};
}

/// The fraction of a step that workers of cut models wait, averaged over the ranks.
double waiting_share(const Candidate& candidate) {
  double waits = 0, all = 0;
  for (const RankTime& rank : candidate.time.ranks) {
    waits += rank.waits;
    all += rank.waits + rank.compute;
  }
  return all > 0 ? waits / all : 0;
}

void simulate(const SearchSetup& setup, Candidate& candidate, KnownPipelines& known) {
  if (!candidate.simulated) candidate.time = time_of(candidate.placed, setup.time, &known);
  candidate.simulated = true;
}

std::string why_slower(const SearchSetup& setup, const Candidate& best, const Candidate& further) {
  const double ratio = further.time.seconds / best.time.seconds;
  std::string text = fmt::format("{} would take {:.2f} times as long", how_cut(further.placed), ratio);
  const auto [layer, share] = longest_layer(setup);
  const double parts = further.placed.parts.size();
  if (share * parts > 1.1) {
    return text + fmt::format(": layer '{}' alone is {:.0f} % of the work, more than a part of {:.0f} should have",
                              layer, 100 * share, parts);
  }
  const double bubble = (parts - 1) / (further.placed.micro_batches + parts - 1);
  const double waits = waiting_share(further);
  if (bubble > 0.1) {
    return text + fmt::format(
                      ": {} are few for so many parts, of each step {:.0f} % is spent waiting; more `micro_batches` "
                      "make that less",
                      telemetry::counted(further.placed.micro_batches, "micro-batch"), 100 * waits);
  }
  std::int64_t moved = 0;
  for (const RankTime& rank : further.time.ranks) moved += rank.activation_bytes;
  return text + fmt::format(
                    ": {} of activations and their gradients move between parts in a step, and workers wait "
                    "{:.0f} % of it",
                    byte_count(moved), 100 * waits);
}

// `all`: best first. The next larger number of parts that was searched may be larger by more than one.
std::string explain(const SearchSetup& setup, std::vector<Candidate>& all, KnownPipelines& known) {
  const Candidate& best = all.front();
  const std::size_t parts = best.placed.parts.size();
  if (static_cast<int>(parts) == setup.ranks.count()) {
    return parts == 1 ? "" : "each rank has a part of its own: more parts need more ranks";
  }
  Candidate* further = nullptr;
  for (Candidate& candidate : all) {
    const std::size_t count = candidate.placed.parts.size();
    if (count <= parts || candidate.placed.choice.recompute != best.placed.choice.recompute) continue;
    if (further == nullptr || count < further->placed.parts.size()) further = &candidate;
  }
  if (further == nullptr) {
    return fmt::format("the model has no more than {} that can be cut from each other", how_cut(best.placed));
  }
  if (!further->fits) return fmt::format("{} would not fit either", how_cut(further->placed));
  simulate(setup, *further, known);
  return why_slower(setup, best, *further);
}

/// Whether any part has several ranks, which could divide its state.
bool divides(const PlacedModel& placed) {
  return std::any_of(placed.parts.begin(), placed.parts.end(), [](const auto& part) { return part.ranks.size() > 1; });
}

bool faster(const Candidate& a, const Candidate& b) {
  if (a.fits != b.fits) return a.fits;
  return a.fits ? a.time.seconds < b.time.seconds : a.max_memory < b.max_memory;
}

Candidate candidate_of(const SearchSetup& setup, PlacedModel placed) {
  Candidate candidate;
  candidate.placed = std::move(placed);
  candidate.memory = memory_of(candidate.placed, setup.memory);
  candidate.fits = true;
  for (std::size_t r = 0; r < candidate.memory.size(); ++r) {
    const std::int64_t charged = candidate.memory[r].charged();
    candidate.max_memory = std::max(candidate.max_memory, charged);
    candidate.fits = candidate.fits && charged <= setup.limits[r];
  }
  for (PlacedPart& part : candidate.placed.parts) part.layout.buckets.reset();
  return candidate;
}

// Only as many steps are simulated as the order of the best needs: a simulation takes longer than everything else.
void sort_best(const SearchSetup& setup, std::vector<Candidate>& all, KnownPipelines& known) {
  const std::ptrdiff_t most = std::min(all.size(), kMostCandidates);
  while (true) {
    std::stable_sort(all.begin(), all.end(), faster);
    const auto next = std::find_if(all.begin(), all.begin() + most, [](const Candidate& of) { return !of.simulated; });
    if (next == all.begin() + most) return;
    simulate(setup, *next, known);
  }
}

// Sharding that only parts on several ranks can have.
std::vector<Sharding> shardings(bool may_divide) {
  std::vector<Sharding> list = {Sharding::none};
  if (may_divide) list.push_back(Sharding::optimizer);
  if (may_divide) list.push_back(Sharding::gradients);
  if (may_divide) list.push_back(Sharding::parameters);
  return list;
}

}  // namespace

std::vector<int> numbers_of_parts(int most) {
  constexpr int kAll = 16;
  std::vector<int> numbers;
  for (int number = 1; number < most;) {
    numbers.push_back(number);
    number += number < kAll ? 1 : static_cast<int>(std::bit_floor(static_cast<unsigned>(number)) / 4);
  }
  numbers.push_back(most);
  return numbers;
}

void for_each_placement(const ModelSetup& model, const RankSetup& ranks, bool may_divide,
                        const std::function<void(PlacedModel placed)>& use) {
  std::vector<Recompute> recompute = {Recompute::never};
  if (!Blocks(model.graph).all().empty()) recompute.push_back(Recompute::blocks);
  Placer placer(model, ranks);
  std::size_t most = 0;  // parts that a placement has had
  for (const int parts : numbers_of_parts(ranks.count())) {
    Choice choice;
    choice.parallel.parts = parts;
    choice.parallel.place = model.job.parallel.place;
    try {
      PlacedModel placed = placer.place(choice);
      if (placed.parts.size() <= most) return;  // there are no more layers to cut
      most = placed.parts.size();
      for (const Recompute how : recompute) {
        for (const Sharding what : shardings(may_divide && divides(placed))) {
          choice.recompute = how;
          choice.parallel.sharding = what;
          use(placer.place(choice));
        }
      }
    } catch (const Error& error) {
      if (error.code() != ExitCode::configuration) throw;  // the model cannot be cut this way: no candidate
    }
  }
}

Candidate predict(const SearchSetup& setup, const Choice& choice) {
  Candidate candidate = candidate_of(setup, place_model(setup.model, setup.ranks, choice));
  KnownPipelines known;
  simulate(setup, candidate, known);
  return candidate;
}

SearchResult search(const SearchSetup& setup) {
  const Choice own = choice_of(setup.model.job);
  KnownPipelines known;
  std::vector<Candidate> all;
  all.push_back(candidate_of(setup, place_model(setup.model, setup.ranks, own)));
  all.back().own = true;
  all.back().time = time_of(all.back().placed, setup.time, &known);
  all.back().simulated = true;
  for_each_placement(setup.model, setup.ranks, setup.may_divide && setup.ranks.count() > 1, [&](PlacedModel placed) {
    if (same(placed, all.front().placed)) return;
    Candidate& candidate = all.emplace_back(candidate_of(setup, std::move(placed)));
    if (candidate.placed.is_cut()) {
      candidate.time.seconds = least_time_of(candidate.placed, setup.time);
    } else {
      simulate(setup, candidate, known);
    }
  });
  sort_best(setup, all, known);
  SearchResult result;
  result.why_not_more_parts = explain(setup, all, known);
  const std::size_t kept = std::min(all.size(), kMostCandidates);
  const auto own_at = std::find_if(all.begin(), all.end(), [](const Candidate& of) { return of.own; });
  if (own_at - all.begin() >= static_cast<std::ptrdiff_t>(kept)) std::swap(all[kept - 1], *own_at);
  result.more = all.size() - kept;
  all.resize(kept);
  result.candidates = std::move(all);
  return result;
}

std::string text_of(const PlacedModel& placed) {
  const Choice& choice = placed.choice;
  std::string text = how_cut(placed);
  if (placed.is_cut() && choice.parallel.branches) text += " (branches)";
  if (placed.is_cut() && !choice.parallel.cuts.empty()) text += " (by hand)";
  if (placed.is_cut()) text += fmt::format(", {} micro-batches in flight", placed.in_flight);
  text += fmt::format(", recompute: {}", name_of(choice.recompute));
  if (choice.sharding() != Sharding::none) text += fmt::format(", sharding: {}", name_of(choice.sharding()));
  return text;
}

std::string overrides_of(const Choice& choice) {
  std::string text = fmt::format("parallel.parts={} recompute={}", choice.parallel.parts, name_of(choice.recompute));
  if (choice.sharding() != Sharding::none) text += fmt::format(" parallel.sharding={}", name_of(choice.sharding()));
  return text;
}

}  // namespace lockstep::plan
