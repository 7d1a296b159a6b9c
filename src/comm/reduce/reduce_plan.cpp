#include "comm/reduce/reduce_plan.hpp"

#include <algorithm>
#include <iterator>

namespace lockstep::comm {

namespace {

std::vector<int> micro_batches_of_host(const MicroBatchAssignment& assignment, const std::vector<int>& ranks) {
  std::vector<int> micro_batches;
  for (const int rank : ranks) {
    const auto& list = assignment.micro_batches_of_rank.at(rank);
    micro_batches.insert(micro_batches.end(), list.begin(), list.end());
  }
  return micro_batches;
}

std::vector<TreeNode> nodes_of(const std::vector<Partial>& partials) {
  std::vector<TreeNode> nodes;
  for (const Partial& partial : partials) nodes.push_back(partial.node);
  return nodes;
}

HostSum host_sum(const Tree& tree, TreeNode node, const std::vector<Partial>& partials) {
  HostSum sum{node, {}, {}};
  std::copy_if(partials.begin(), partials.end(), std::back_inserter(sum.parts), [&](const Partial& part) {
    return tree.first(node) <= tree.first(part.node) && tree.end(part.node) <= tree.end(node);
  });
  sum.additions = combine_order(tree, node, nodes_of(sum.parts));
  return sum;
}

using What = PlannedMessage::What;

}  // namespace

SumPlan plan_sums(const Tree& tree, const MicroBatchAssignment& assignment, const Hosts& hosts, int rank) {
  SumPlan plan;
  const int own_host = hosts.host_of(rank);
  for (int r = 0; r < static_cast<int>(assignment.micro_batches_of_rank.size()); ++r) {
    auto roots = tree.maximal_subtrees(assignment.micro_batches_of_rank[r]);
    plan.max_roots = std::max(plan.max_roots, static_cast<int>(roots.size()));
    for (int root = 0; root < static_cast<int>(roots.size()) && hosts.host_of(r) == own_host; ++root) {
      plan.partials.push_back({r, root, roots[root]});
    }
    if (r == rank) plan.roots = std::move(roots);
  }
  std::vector<TreeNode> operands = nodes_of(plan.partials);
  for (int host = 0; host < hosts.count(); ++host) {
    int number = 0;
    for (const TreeNode node : tree.maximal_subtrees(micro_batches_of_host(assignment, hosts.ranks(host)))) {
      if (host == own_host) {
        plan.host_sums.push_back(host_sum(tree, node, plan.partials));
      } else {
        plan.others.push_back({hosts.leader(host, rank), number++, node});
        operands.push_back(node);
      }
    }
  }
  plan.additions = combine_order(tree, tree.root(), operands);
  return plan;
}

std::vector<BucketPlan> plan_buckets(const GradientBuckets& buckets, const Hosts& hosts, int rank) {
  std::vector<BucketPlan> plans;
  const int own_host = hosts.host_of(rank);
  for (int b = 0; b < buckets.count(); ++b) {
    BucketPlan& plan = plans.emplace_back();
    plan.scattered = buckets.at(b).scattered;
    const std::vector<Slice> slices = slices_of(buckets, b, hosts.rank_count());
    plan.slices.reserve(slices.size());
    for (const Slice& slice : slices) {
      const int number = plan.slices.size(), leader = hosts.leader(own_host, slice.owner);
      plan.slices.push_back({slice.owner, leader, slice.first, slice.size});
      if (slice.owner == rank) {
        plan.own = number;
      } else if (leader == rank) {
        plan.led.push_back(number);
      }
    }
  }
  return plans;
}

SumPlan plan_of_host_sums(const Tree& tree, const SumPlan& plan, int rank) {
  SumPlan whole = plan;
  whole.partials.clear();
  std::vector<TreeNode> operands;
  for (HostSum& sum : whole.host_sums) {
    whole.partials.push_back({rank, static_cast<int>(whole.partials.size()), sum.node});
    sum = {sum.node, {whole.partials.back()}, {}};
    operands.push_back(sum.node);
  }
  for (const OtherSum& other : whole.others) operands.push_back(other.node);
  whole.additions = combine_order(tree, tree.root(), operands);
  return whole;
}

ReducePlan reduce_plan(const MicroBatchAssignment& assignment, const Hosts& hosts, const GradientBuckets& buckets,
                       int rank, bool streamed) {
  return {rank, plan_sums(Tree(buckets.micro_batches), assignment, hosts, rank), plan_buckets(buckets, hosts, rank),
          streamed, static_cast<int>(assignment.micro_batches_of_rank[rank].size())};
}

std::vector<PlannedMessage> planned_sends(const ReducePlan& plan, const Hosts& hosts, int bucket) {
  const BucketPlan& of = plan.buckets[bucket];
  const int own_host = hosts.host_of(plan.rank);
  std::vector<PlannedMessage> messages;
  for (int number = 0; number < static_cast<int>(of.slices.size()); ++number) {
    const PlannedSlice& slice = of.at(number);
    if (slice.leader != plan.rank) {
      for (int root = 0; root < static_cast<int>(plan.sums.roots.size()); ++root) {
        messages.push_back({slice.leader, What::partial, root, number});
      }
    } else if (slice.owner != plan.rank) {
      for (int sum = 0; sum < static_cast<int>(plan.sums.host_sums.size()); ++sum) {
        messages.push_back({slice.owner, What::host_sum, sum, number});
      }
    }
  }
  if (of.own < 0 || of.scattered) return messages;
  for (const int peer : hosts.ranks(own_host)) {
    if (peer != plan.rank) messages.push_back({peer, What::finished, 0, of.own});
  }
  for (int host = 0; host < hosts.count(); ++host) {
    if (host != own_host) messages.push_back({hosts.leader(host, plan.rank), What::finished, 0, of.own});
  }
  return messages;
}

std::vector<PlannedMessage> planned_receives(const ReducePlan& plan, const Hosts& hosts, int bucket) {
  const BucketPlan& of = plan.buckets[bucket];
  std::vector<PlannedMessage> messages;
  for (int number = 0; number < static_cast<int>(of.slices.size()); ++number) {
    const PlannedSlice& slice = of.at(number);
    if (slice.leader == plan.rank) {
      for (const Partial& part : plan.sums.partials) {
        if (part.rank != plan.rank) messages.push_back({part.rank, What::partial, part.root, number});
      }
    }
    if (slice.owner == plan.rank) {
      for (const OtherSum& sum : plan.sums.others) messages.push_back({sum.leader, What::host_sum, sum.number, number});
    } else if (!of.scattered && (slice.leader == plan.rank || hosts.host_of(slice.owner) == hosts.host_of(plan.rank))) {
      messages.push_back({slice.owner, What::finished, 0, number});
    }
  }
  return messages;
}

PlannedBytes bytes_of(const ReducePlan& plan, const Hosts& hosts, int bucket) {
  const BucketPlan& of = plan.buckets[bucket];
  const auto bytes = [](std::size_t count, std::int64_t size) { return count * size * sizeof(float); };
  const std::size_t partials =
      plan.streamed && of.scattered ? static_cast<std::size_t>(plan.micro_batches) : plan.sums.roots.size();
  PlannedBytes sent;
  for (const PlannedSlice& slice : of.slices) {
    if (slice.leader != plan.rank) {
      sent.inside_host += bytes(partials, slice.size);
    } else if (slice.owner != plan.rank) {
      sent.between_hosts += bytes(plan.sums.host_sums.size(), slice.size);
    }
  }
  if (of.scattered) return sent;
  sent.inside_host += bytes(hosts.ranks(hosts.host_of(plan.rank)).size() - 1, of.own_size());
  sent.between_hosts += bytes(static_cast<std::size_t>(hosts.count() - 1), of.own_size());
  return sent;
}

PlannedBytes bytes_of(const ReducePlan& plan, const Hosts& hosts) {
  PlannedBytes all;
  for (int b = 0; b < static_cast<int>(plan.buckets.size()); ++b) {
    const PlannedBytes bytes = bytes_of(plan, hosts, b);
    all.inside_host += bytes.inside_host;
    all.between_hosts += bytes.between_hosts;
  }
  return all;
}

}  // namespace lockstep::comm
