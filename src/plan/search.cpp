#include "plan/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "graph/blocks.hpp"
#include "lockstep/error.hpp"
#include "telemetry/text.hpp"

namespace lockstep::plan {

namespace {

std::string how_cut(const PlacedModel& placed) {
  return telemetry::counted(std::ssize(placed.parts), "part");
}

bool is_number_of_parts(const Choice& choice) {
  return choice.parallel.cuts.empty() && !choice.parallel.branches;
}

bool same(const Choice& a, const Choice& b) {
  return is_number_of_parts(a) == is_number_of_parts(b) && a.parallel.parts == b.parallel.parts &&
         a.recompute == b.recompute && a.sharding() == b.sharding() && a.parallel.in_flight == b.parallel.in_flight;
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

std::string why_slower(const SearchSetup& setup, const Candidate& best, const Candidate& further) {
  const double ratio = further.time.seconds / best.time.seconds;
  std::string text = fmt::format("{} would take {:.2f} times as long", how_cut(further.placed), ratio);
  const auto [layer, share] = longest_layer(setup);
  const auto parts = static_cast<double>(further.placed.parts.size());
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
                    telemetry::byte_count(static_cast<double>(moved)), 100 * waits);
}

std::string explain(const SearchSetup& setup, const std::vector<Candidate>& candidates) {
  const Candidate& best = candidates.front();
  const std::size_t parts = best.placed.parts.size();
  if (static_cast<int>(parts) == setup.ranks.count()) {
    return parts == 1 ? "" : "each rank has a part of its own: more parts need more ranks";
  }
  const auto further = std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& candidate) {
    return candidate.placed.parts.size() == parts + 1 &&
           candidate.placed.choice.recompute == best.placed.choice.recompute;
  });
  if (further == candidates.end()) {
    return fmt::format("the model has no more than {} that can be cut from each other", how_cut(best.placed));
  }
  if (!further->fits) return fmt::format("{} would not fit either", how_cut(further->placed));
  return why_slower(setup, best, *further);
}

/// Whether any part has several ranks, which could divide its state.
bool divides(const PlacedModel& placed) {
  return std::any_of(placed.parts.begin(), placed.parts.end(), [](const auto& part) { return part.ranks.size() > 1; });
}

bool faster(const Candidate& a, const Candidate& b) {
  if (a.fits != b.fits) return a.fits;
  return a.fits ? a.time.seconds < b.time.seconds : a.max_memory() < b.max_memory();
}

}  // namespace

std::int64_t Candidate::max_memory() const {
  std::int64_t most = 0;
  for (const RankMemory& rank : memory) most = std::max(most, rank.charged());
  return most;
}

std::vector<Choice> choices_of(const ModelSetup& model, int parts, bool may_divide) {
  std::vector<Recompute> recompute = {Recompute::never};
  if (!Blocks(model.graph).all().empty()) recompute.push_back(Recompute::blocks);
  std::vector<Sharding> sharding = {Sharding::none};
  if (may_divide) sharding.push_back(Sharding::optimizer);
  if (may_divide && !model.on_gpus) sharding.push_back(Sharding::gradients);
  if (may_divide) sharding.push_back(Sharding::parameters);
  std::vector<Choice> list;
  for (int count = 1; count <= parts; ++count) {
    for (const Recompute how : recompute) {
      for (const Sharding what : sharding) {
        Choice& choice = list.emplace_back();
        choice.parallel.parts = count;
        choice.parallel.sharding = what;
        choice.recompute = how;
      }
    }
  }
  return list;
}

Candidate predict(const SearchSetup& setup, const Choice& choice) {
  Candidate candidate;
  candidate.placed = place_model(setup.model, setup.ranks, choice);
  candidate.memory = memory_of(candidate.placed, setup.memory);
  candidate.time = time_of(candidate.placed, setup.time);
  candidate.fits = true;
  for (std::size_t r = 0; r < candidate.memory.size(); ++r) {
    candidate.fits = candidate.fits && candidate.memory[r].charged() <= setup.limits[r];
  }
  return candidate;
}

SearchResult search(const SearchSetup& setup) {
  SearchResult result;
  const Choice own = choice_of(setup.model.job);
  result.candidates.push_back(predict(setup, own));
  result.candidates.back().own = true;
  const int ranks = setup.ranks.count();
  for (Choice& choice : choices_of(setup.model, ranks, setup.may_divide && ranks > 1)) {
    if (same(choice, own)) continue;
    choice.parallel.place = own.parallel.place;
    try {
      Candidate candidate = predict(setup, choice);
      if (choice.sharding() != Sharding::none && !divides(candidate.placed)) continue;
      // If there are fewer layers than parts, a smaller number of parts has given the same placement.
      const bool known = std::any_of(result.candidates.begin(), result.candidates.end(), [&](const Candidate& other) {
        return other.placed.parts.size() == candidate.placed.parts.size() && is_number_of_parts(other.placed.choice) &&
               other.placed.choice.recompute == choice.recompute &&
               other.placed.choice.sharding() == choice.sharding() &&
               other.placed.choice.parallel.in_flight == choice.parallel.in_flight;
      });
      if (!known) result.candidates.push_back(std::move(candidate));
    } catch (const Error& error) {
      if (error.code() != ExitCode::configuration) throw;  // the model cannot be cut this way: no candidate
    }
  }
  std::stable_sort(result.candidates.begin(), result.candidates.end(), faster);
  result.why_not_more_parts = explain(setup, result.candidates);
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
