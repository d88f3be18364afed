#include "tests/operators/replay.h"

#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "estimator/shadow/tables/aten_table.h"

namespace headroom::probes {
namespace {

using nlohmann::json;
using namespace headroom::shadow;

/// What torch.autograd.grad puts in front of a leaf: takes the gradient as it is.
class Capture final : public Node {
 public:
  explicit Capture(const Tensor& leaf) {
    sequence = std::numeric_limits<std::uint64_t>::max() - 1;
    inputs.push_back({leaf->sizes, leaf->dtype});
  }
  std::string_view name() const override { return "Capture"; }
  Gradients apply(Shadow&, const Gradients& grads) override {
    taken_ = grads[0];
    return {};
  }

 private:
  Tensor taken_;
};

Value value_of(const json& a, const std::vector<Value>& slots) {
  if (a.is_null()) return {};
  if (a.is_boolean()) return a.get<bool>();
  if (a.is_number_integer()) return a.get<std::int64_t>();
  if (a.is_number()) return a.get<double>();
  ValueList list;
  if (a.is_array()) {
    for (const json& e : a) list.push_back(value_of(e, slots));
    return list;
  }
  if (a.contains("t")) return slots[a["t"].get<std::size_t>()];
  if (a.contains("d")) return dtype_named(a["d"].get_ref<const std::string&>());
  if (a.contains("s")) return std::string_view(a["s"].get_ref<const std::string&>());
  if (a.contains("f")) return a["f"] == "inf" ? HUGE_VAL : -HUGE_VAL;
  if (a.contains("i")) return Dims(a["i"].begin(), a["i"].end());
  for (const json& e : a["l"]) list.push_back(e.is_null() ? Value() : slots[e.get<std::size_t>()]);
  return list;
}

Passes split(const Trace& trace) {
  Passes passes;
  Events* now = nullptr;
  std::map<std::int32_t, std::int64_t> places;
  std::int64_t count = 0;
  for (const TraceEvent& e : trace.events) {
    if (e.kind == TraceEvent::Kind::phase) {
      now = e.phase == Phase::forward ? &passes.forward : e.phase == Phase::backward ? &passes.backward : nullptr;
      places.clear();
      count = 0;
    } else if (now && e.kind == TraceEvent::Kind::alloc) {
      places[e.index] = count++;
      now->push_back({true, trace.blocks[static_cast<std::size_t>(e.index)].bytes.count()});
    } else if (now && e.kind == TraceEvent::Kind::free) {
      const auto place = places.find(e.index);
      now->push_back({false, place == places.end() ? -1 : place->second});
    }
  }
  return passes;
}

Events events_of(const json& recorded_events) {
  Events events;
  for (const json& e : recorded_events) events.push_back({e[0] == "A", e[1].get<std::int64_t>()});
  return events;
}

}  // namespace

DeviceFacts recording_card() {
  DeviceFacts device;
  device.cublas_workspace = Bytes(0);
  device.cublaslt_workspace = Bytes(0);
  return device;
}

void store(Value value, std::size_t slot, std::vector<Value>& slots) {
  if (slots.size() <= slot) slots.resize(slot + 1);
  slots[slot] = std::move(value);
}

void let_go(const json& call, std::vector<Value>& slots) {
  for (const json& d : call["drop"]) slots[d.get<std::size_t>()] = Value();
}

void run_call(Shadow& m, const json& call, std::vector<Value>& slots) {
  std::vector<Value> args;
  for (const json& a : call["args"]) args.push_back(value_of(a, slots));
  Outputs results = m.dispatch(call["op"].get_ref<const std::string&>(), args);
  args.clear();
  const json& out = call["out"];
  std::size_t i = 0;
  const auto keep = [&](Value v) {
    if (i < out.size()) store(std::move(v), out[i++].get<std::size_t>(), slots);
  };
  for (Value& r : results) {
    if (!r.is_list())
      keep(std::move(r));
    else
      for (Value& e : r.list()) keep(std::move(e));
  }
  results.clear();
  let_go(call, slots);
}

Passes recorded(const json& probe) { return {events_of(probe["fwd"]), events_of(probe["bwd"])}; }

Passes replayed(const json& probe) {
  Shadow m(*aten::table_for("2.11").table, recording_card());
  std::vector<Value> slots;
  for (const json& in : probe["inputs"]) {
    const Dims sizes(in["shape"].begin(), in["shape"].end());
    const Dims strides =
        in.contains("strides") ? Dims(in["strides"].begin(), in["strides"].end()) : contiguous_strides(sizes);
    const Tensor t = m.empty_strided(sizes, strides, dtype_named(in["dtype"].get_ref<const std::string&>()));
    if (in["grad"].get<bool>()) t->grad_fn = Ref<Node>(new Capture(t));
    slots.emplace_back(t);
  }
  const std::vector<Value> held = slots;
  m.phase(Phase::forward, 0);
  for (const json& call : probe["calls"]) run_call(m, call, slots);
  const Tensor result = slots[probe["result"].get<std::size_t>()].tensor();
  slots.clear();
  Tensor grad;
  m.phase(Phase::setup, 0);
  if (result && probe["grad"].get<bool>()) grad = m.empty_like(result);
  m.phase(Phase::backward, 0);
  if (grad) run_backward(m, std::span(&result, 1), {grad});
  m.phase(Phase::setup, 0);
  return split(m.take_trace());
}

std::string text_of(const Events& events) {
  std::string s;
  for (const Event& e : events)
    s += (s.empty() ? "" : " ") + std::string(e.made ? "+" : "-#") + std::to_string(e.number);
  return s;
}

}  // namespace headroom::probes
