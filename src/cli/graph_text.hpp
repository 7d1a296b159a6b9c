// A graph in words: a table for people, and Graphviz's language.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/graph.hpp"

namespace lockstep::cli {

/// One line a node; shapes and FLOPs are per sample. `batch`: samples of the graph's shard.
[[nodiscard]] std::string layer_table(const Graph& graph, std::int64_t batch);

[[nodiscard]] std::string graphviz(const Graph& graph, const std::string& name);

/// 1234567 -> "1.23 M", 41000000000 -> "41.0 G"
[[nodiscard]] std::string with_unit(double value);

}  // namespace lockstep::cli
