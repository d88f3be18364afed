#include "estimator/plan/shaped_programs.h"

#include <unordered_map>

#include "estimator/base/error.h"

namespace headroom {
namespace {

Bindings bindings_of(const Scenario& s, std::optional<std::int64_t> sequence) {
  return {.batch = s.batch, .sequence = sequence ? sequence : s.sequence, .dims = s.dims, .shapes = s.shapes};
}

/// `s` with its sequence axes at another length: --shape's sizes along an input's sequence axis follow.
Bindings rebound(const Scenario& s, const ShapedGraph& first, std::int64_t sequence) {
  Bindings b = bindings_of(s, sequence);
  for (const ShapedInput& i : first.inputs) {
    const auto given = b.shapes.find(i.name);
    if (given != b.shapes.end() && i.sequence_axis >= 0)
      given->second[static_cast<std::size_t>(i.sequence_axis)] = sequence;
  }
  for (const BoundDim& d : first.dims)
    if (d.meaning == DimMeaning::sequence)
      if (const auto named = b.dims.find(d.name); named != b.dims.end()) named->second = sequence;
  return b;
}

}  // namespace

Scenario shape_part(const Scenario& s) {
  return {.task = s.task,
          .batch = s.batch,
          .sequence = s.sequence,
          .dims = s.dims,
          .shapes = s.shapes,
          .precision = s.training() ? Precision::fp32 : s.precision,
          .sequences = s.sequences};
}

RecoverOptions recover_options(const Scenario& s) {
  return {.training = s.training(), .fast_path = !s.training() && s.autocast_dtype() == DType::undefined};
}

ShapedPrograms shaped_programs(const Model& model, const Scenario& scenario, bool read_text) {
  ShapedPrograms out;
  RecoverOptions options = recover_options(scenario);
  options.read_text = read_text;
  const auto add = [&](const Bindings& b) {
    out.graphs.push_back(std::make_shared<const ShapedGraph>(bind(model, b)));
    out.programs.push_back(std::make_shared<const Program>(recover(*out.graphs.back(), options)));
  };
  if (scenario.sequences.empty()) {
    add(bindings_of(scenario, {}));
    out.order.push_back(out.programs[0].get());
  } else {
    std::unordered_map<std::int64_t, std::size_t> by_length;
    const ShapedGraph first = bind(model, bindings_of(scenario, scenario.sequences.front()));
    for (const auto length : scenario.sequences) {
      const auto [it, fresh] = by_length.try_emplace(length, out.programs.size());
      if (fresh) add(rebound(scenario, first, length));
      out.order.push_back(out.programs[it->second].get());
    }
  }
  if (out.programs[0]->outputs.empty())
    throw bad_input("the graph has no output that depends on its inputs", model.path.string());
  return out;
}

}  // namespace headroom
