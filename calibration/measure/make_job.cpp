#include "calibration/measure/make_job.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "estimator/plan/step_trace.h"

namespace headroom {
namespace {

/// By slot: the sizes of the file's value that it is named after.
std::vector<std::optional<Dims>> bound_shapes(const ShapedGraph& graph, const Program& program) {
  std::unordered_map<std::string_view, const ShapedValue*> by_name;
  for (std::size_t i = 0; i < graph.values.size(); ++i) {
    const ShapedValue& v = graph.at(ValueId(i));
    if (v.is_tensor() && !v.upper_bound) by_name.emplace(graph.model->name_of(ValueId(i)), &v);
  }
  std::vector<std::optional<Dims>> out(program.slot_count());
  for (std::size_t i = 0; i < out.size(); ++i)
    if (const auto found = by_name.find(program.slot_names[i]); found != by_name.end()) out[i] = found->second->dims;
  return out;
}

}  // namespace

Job make_job(const ShapedPrograms& programs, const Scenario& scenario) {
  Job job;
  job.scenario = scenario;
  job.steps = steps_of(scenario);
  job.programs = programs.programs;
  for (const Program* p : programs.order)
    job.order.push_back(static_cast<std::size_t>(
        std::ranges::find(programs.programs, p, [](const auto& q) { return q.get(); }) - programs.programs.begin()));
  for (std::size_t i = 0; i < programs.programs.size(); ++i)
    job.shapes.push_back(bound_shapes(*programs.graphs[i], *programs.programs[i]));
  return job;
}

}  // namespace headroom
