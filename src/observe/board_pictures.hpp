// A model as TensorBoard draws it: the graph, and the filters of its first convolution.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/picture.hpp"
#include "exec/parameters.hpp"
#include "lockstep/graph.hpp"
#include "telemetry/tensorboard.hpp"

namespace lockstep::observe {

/// "block1.conv" -> "block1/conv": TensorBoard folds names at the slash.
[[nodiscard]] std::string path_name(std::string name);

/// Inputs, parameters and states are nodes too, as in the graphs that TensorBoard knows.
[[nodiscard]] std::vector<telemetry::BoardNode> board_nodes(const Graph& graph);

/// A cell a filter, in color where it reads three channels, else its first channel; 0 is the middle gray and the
/// largest weight of the layer black or white. Nothing where the graph has no convolution.
[[nodiscard]] std::optional<data::Picture> first_filters(const Graph& graph, const exec::TensorBlock& parameters);

}  // namespace lockstep::observe
