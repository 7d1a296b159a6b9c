#include "comm/reduce/combiner.hpp"

#include <algorithm>

#include "comm/reduce/add.hpp"

namespace lockstep::comm {

namespace {

constexpr std::int64_t kBlock = 4096;

}  // namespace

Combiner::Combiner(std::span<const Addition> additions, std::size_t sources) {
  const int given = static_cast<int>(sources);
  std::vector<Operand> result(additions.size());
  std::vector<int> free;
  int blocks = 0;
  const auto operand = [&](int slot) {
    return slot < given ? Operand{Operand::Kind::partial, slot} : result[static_cast<std::size_t>(slot - given)];
  };
  const auto release = [&](Operand o) {
    if (o.kind == Operand::Kind::scratch) free.push_back(o.index);
  };
  for (std::size_t i = 0; i < additions.size(); ++i) {
    const Operand left = operand(additions[i].left), right = operand(additions[i].right);
    Operand out{Operand::Kind::output, 0};
    if (i + 1 < additions.size()) {
      if (left.kind == Operand::Kind::scratch) {
        out = left;
      } else {
        if (free.empty()) free.push_back(blocks++);
        out = {Operand::Kind::scratch, free.back()};
        free.pop_back();
      }
    } else {
      release(left);
    }
    release(right);
    steps_.push_back({out, left, right});
    result[i] = out;
  }
  scratch_ = AlignedBytes(static_cast<std::size_t>(blocks * kBlock) * sizeof(float));
}

void Combiner::run(float* out, std::span<const float* const> sources, std::int64_t n) {
  if (steps_.empty()) {
    std::copy_n(sources[0], n, out);
    return;
  }
  auto* scratch = reinterpret_cast<float*>(scratch_.data());
  for (std::int64_t at = 0; at < n; at += kBlock) {
    const std::int64_t size = std::min(kBlock, n - at);
    const auto read = [&](Operand o) -> const float* {
      return o.kind == Operand::Kind::partial ? sources[static_cast<std::size_t>(o.index)] + at
                                              : scratch + o.index * kBlock;
    };
    for (const Step& step : steps_) {
      float* to = step.out.kind == Operand::Kind::output ? out + at : scratch + step.out.index * kBlock;
      const float *left = read(step.left), *right = read(step.right);
      if (to == left) {
        accumulate(to, right, size);
      } else {
        add(to, left, right, size);
      }
    }
  }
}

}  // namespace lockstep::comm
