#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "estimator/report/json_parts.h"
#include "estimator/report/report.h"

namespace headroom::report {
namespace {

using nlohmann::ordered_json;

void add_members(ordered_json::object_t&) {}
template <class Value, class... Rest>
void add_members(ordered_json::object_t& object, const char* key, Value&& value, Rest&&... rest) {
  object.emplace_back(key, std::forward<Value>(value));
  add_members(object, std::forward<Rest>(rest)...);
}
/// An object of a long list, from keys and values in turns: `{{key, value}, …}` would make each a list first.
template <class... Members>
ordered_json row(Members&&... members) {
  ordered_json::object_t object;
  object.reserve(sizeof...(members) / 2);
  add_members(object, std::forward<Members>(members)...);
  return object;
}

ordered_json place_json(const RunPlace& p) { return {{"node", p.node}, {"op", p.op}, {"module", p.module}}; }

/// Peaks of a phase over the whole run.
ordered_json phase_json(const Estimate& e, Phase phase) {
  Bytes allocated, reserved;
  for (const PhaseFigures& p : e.phases)
    if (p.phase == phase) {
      allocated = std::max(allocated, p.allocated_peak);
      reserved = std::max(reserved, p.reserved_peak);
    }
  return {{"allocated_bytes", allocated.count()}, {"reserved_bytes", reserved.count()}};
}

}  // namespace

std::string json(const Estimate& e) {
  ordered_json j = json_head();
  j["scenario"] = scenario_json(e.scenario);
  j["model"] = {{"name", e.model.name},
                {"parameters", e.model.parameters},
                {"trainable_parameters", e.model.trainable},
                {"nodes", e.model.nodes},
                {"hash", fmt::format("{:016x}", e.model.hash)}};
  ordered_json dims = ordered_json::object();
  for (const BoundDim& d : e.dims) dims[d.name] = d.value;
  j["model"]["dims"] = dims;
  j["peak"] = {{"allocated_bytes", e.peak_allocated.count()},
               {"reserved_bytes", e.peak_reserved.count()},
               {"device_bytes", e.peak_device.count()},
               {"phase", headroom::name_of(e.at.phase)},
               {"step", e.at.step},
               {"at", place_json(e.at)}};
  j["phases"] = {{"forward", phase_json(e, Phase::forward)},
                 {"backward", phase_json(e, Phase::backward)},
                 {"optimizer", phase_json(e, Phase::optimizer)}};
  ordered_json categories = ordered_json::object();
  for (int c = 0; c < category_count; ++c)
    categories[std::string(headroom::name_of(static_cast<Category>(c)))] =
        e.categories[static_cast<std::size_t>(c)].count();
  categories["rounding"] = e.rounding.count();
  j["categories"] = categories;
  j["fragmentation_bytes"] = e.fragmentation.count();
  j["context_bytes"] = e.context.count();
  j["resident"] = {{"weights_bytes", e.model.weight_bytes.count()},
                   {"buffers_bytes", e.model.buffer_bytes.count()},
                   {"optimizer_state_bytes", e.optimizer_state_bytes.count()},
                   {"gradients_bytes", e.gradient_bytes.count()}};
  ordered_json parts = ordered_json::array();
  for (const MarginPart& p : e.margins)
    parts.push_back({{"code", p.code},
                     {"allocated_bytes", p.allocated.count()},
                     {"reserved_bytes", p.reserved.count()},
                     {"device_bytes", p.device.count()}});
  j["margin"] = {{"allocated_bytes", e.margin_allocated.count()},
                 {"reserved_bytes", e.margin_reserved.count()},
                 {"device_bytes", e.margin_device.count()},
                 {"parts", parts}};
  if (e.fits) {
    j["fits"] = *e.fits;
    j["spare_bytes"] = e.spare.count();
  }
  if (e.budget) {
    j["budget_bytes"] = e.budget->count();
    j["within_budget"] = e.within_budget();
  }
  if (e.out_of_memory)
    j["out_of_memory"] = {{"phase", headroom::name_of(e.oom_at.phase)},
                          {"step", e.oom_at.step},
                          {"at", place_json(e.oom_at)},
                          {"text", e.oom_text}};
  j["diagnostics"] = diagnostics_json(e.diagnostics);
  ordered_json largest = ordered_json::array();
  for (const LiveTensor& t : e.largest)
    largest.push_back(row("bytes", t.bytes.count(), "category", headroom::name_of(t.category), "name", t.name, "op",
                          t.op, "module", t.module));
  j["largest"] = std::move(largest);
  ordered_json modules = ordered_json::array();
  modules.get_ref<ordered_json::array_t&>().reserve(e.owners.size());
  for (const OwnedBytes& o : e.owners)
    modules.push_back(row("module", o.module, "category", headroom::name_of(o.category), "bytes", o.bytes.count()));
  j["modules"] = std::move(modules);
  ordered_json steps = ordered_json::array();
  for (const PhaseFigures& p : e.phases)
    steps.push_back(row("step", p.step, "phase", headroom::name_of(p.phase), "allocated_bytes", p.allocated_end.count(),
                        "allocated_peak_bytes", p.allocated_peak.count(), "reserved_bytes", p.reserved_end.count(),
                        "reserved_peak_bytes", p.reserved_peak.count(), "requested_peak_bytes",
                        p.requested_peak.count()));
  j["steps"] = std::move(steps);
  j["seconds"] = e.seconds;
  return json_text(j);
}

}  // namespace headroom::report
