// If, Loop, Scan and SequenceMap: operators with bodies.
#include <algorithm>
#include <string>
#include <utility>

#include "estimator/bind/inference.h"

namespace headroom {
namespace {

/// A loop whose iterations all together stay below this many nodes is followed iteration by iteration.
constexpr std::int64_t exact_work = 100'000;
constexpr std::int64_t most_exact_iterations = 65'536;

std::int64_t weight_of(const ShapedValue& v) {
  if (v.kind == ShapedValue::Kind::sequence) {
    std::int64_t all = 0;
    for (const auto& e : *v.elements) all = checked_add(all, weight_of(e));
    return all;
  }
  return v.is_tensor() ? bytes_of(v.dtype, v.count()).count() : 0;
}

bool same_contents(const ShapedValue& a, const ShapedValue& b) {
  if (a.contents == b.contents) return true;
  return a.contents && b.contents && a.contents->integers == b.contents->integers &&
         a.contents->reals == b.contents->reals;
}

bool same_shape(const ShapedValue& a, const ShapedValue& b) {
  if (a.kind != b.kind || a.dims != b.dims) return false;
  if (a.kind != ShapedValue::Kind::sequence) return true;
  return std::equal(a.elements->begin(), a.elements->end(), b.elements->begin(), b.elements->end(), same_shape);
}

ShapedValue integer_scalar(std::optional<std::int64_t> value, DType dtype = DType::i64) {
  ShapedValue v;
  v.kind = ShapedValue::Kind::tensor;
  v.dtype = dtype;
  if (value) v.contents = known(Integers{*value});
  return v;
}

std::optional<std::int64_t> exact_integer(const ShapedValue& v) { return v.upper_bound ? std::nullopt : v.integer(); }

/// What one iteration says need not be said again by the next.
void forget_diagnostics(ShapedGraph& graph, std::size_t kept) {
  graph.diagnostics.erase(graph.diagnostics.begin() + static_cast<std::ptrdiff_t>(kept), graph.diagnostics.end());
}

/// Takes `axis` out of a scanned input, or puts it into a scan output.
Dims without_axis(Dims dims, std::size_t axis) {
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(axis));
  return dims;
}
Dims with_axis(Dims dims, std::size_t axis, std::int64_t size) {
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), size);
  return dims;
}

}  // namespace

/// A loop over a body: inputs [counter, condition,] carried..., slices...; outputs [condition,] carried..., scanned...
/// .
struct Inference::Iteration {
  const Graph& body;
  bool counted;                       ///< has the counter and the condition of Loop
  std::optional<std::int64_t> trips;  ///< nullopt: unknown
  std::vector<ShapedValue> carried;
  std::vector<ShapedValue> slices;

  std::size_t first_input() const { return counted ? 2 : 0; }
  std::size_t first_output() const { return counted ? 1 : 0; }
  std::size_t scanned() const { return body.outputs.size() - first_output() - carried.size(); }
};

struct Inference::Outcome {
  std::shared_ptr<const ShapedBody> body;
  std::vector<ShapedValue> carried;
  std::vector<ShapedValue> scanned;  ///< of one iteration
  std::optional<std::int64_t> trips;
  bool trips_are_bound = false;
};

bool Inference::shape_control_flow(const NodeShaper& op, std::vector<ShapedNode>& nodes) {
  const std::string_view type = op.node().op_type;
  if (type == "If")
    shape_if(op, nodes);
  else if (type == "Loop")
    shape_loop(op, nodes);
  else if (type == "Scan")
    shape_scan(op, nodes);
  else if (type == "SequenceMap")
    shape_sequence_map(op, nodes);
  else
    return false;
  return true;
}

std::shared_ptr<const ShapedBody> Inference::shape_body(const Graph& body) {
  auto shaped = std::make_shared<ShapedBody>();
  shaped->graph = &body;
  shape(body, shaped->nodes);
  return shaped;
}

void Inference::shape_if(const NodeShaper& op, std::vector<ShapedNode>& nodes) {
  const Node& node = op.node();
  const Graph *then_branch = node.graph("then_branch"), *else_branch = node.graph("else_branch");
  op.require(then_branch && else_branch, "a branch is missing");
  op.require(then_branch->outputs.size() >= node.outputs.size() && else_branch->outputs.size() >= node.outputs.size(),
             "a branch has fewer outputs than the node");
  for (const ValueId output : node.outputs)
    if (output.valid()) graph_.same_as[output.at()] = output;

  if (const auto condition = exact_integer(op.tensor(0))) {
    const Graph& taken = *condition ? *then_branch : *else_branch;
    shape(taken, nodes);
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i].valid()) graph_.same_as[node.outputs[i].at()] = graph_.resolve(taken.outputs[i].value);
    return;
  }

  ShapedNode shaped{&node, {shape_body(*then_branch), shape_body(*else_branch)}, 1, false};
  bool differ = false;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const ShapedValue &a = graph_.at(then_branch->outputs[i].value), &b = graph_.at(else_branch->outputs[i].value);
    ShapedValue larger = weight_of(a) >= weight_of(b) ? a : b;
    if (!same_contents(a, b)) larger.contents = nullptr;
    if (!same_shape(a, b)) {
      larger.upper_bound = true;
      differ = true;
    }
    op.set_value(i, larger);
  }
  if (differ)
    graph_.diagnostics.push_back({"branch-not-known", Severity::warning, std::string(node.name),
                                  "If: which branch runs depends on data; the larger result is taken", Bytes{}});
  nodes.push_back(std::move(shaped));
}

/// Follows the iterations one by one while that is cheap; else takes them for alike, or growing by the same sizes each
/// time, and proves it on the last. The body is left as its largest iteration shapes it.
Inference::Outcome Inference::iterate(const NodeShaper& op, Iteration& loop) {
  const Graph& body = loop.body;
  const std::size_t inputs = loop.first_input() + loop.carried.size() + loop.slices.size();
  op.require(body.inputs.size() == inputs, "the body has " + std::to_string(body.inputs.size()) +
                                               " inputs, the node gives it " + std::to_string(inputs));
  op.require(body.outputs.size() >= loop.first_output() + loop.carried.size(),
             "the body has fewer outputs than carried values");

  Outcome out;
  std::optional<std::int64_t> goes_on;  // what the body's condition says; nullopt: depends on data
  const auto run = [&](std::optional<std::int64_t> counter, const std::vector<ShapedValue>& carried) {
    const auto give = [&](std::size_t i, const ShapedValue& v) { graph_.values[body.inputs[i].value.at()] = v; };
    if (loop.counted) {
      give(0, integer_scalar(counter));
      give(1, integer_scalar(1, DType::b8));
    }
    for (std::size_t i = 0; i < carried.size(); ++i) give(loop.first_input() + i, carried[i]);
    for (std::size_t i = 0; i < loop.slices.size(); ++i) give(loop.first_input() + carried.size() + i, loop.slices[i]);
    out.body = shape_body(body);
    const auto result = [&](std::size_t i) {
      const ShapedValue& v = graph_.at(body.outputs[i].value);
      op.require(v.kind != ShapedValue::Kind::unknown, "an output of the body has no shape");
      return v;
    };
    goes_on = loop.counted ? exact_integer(result(0)) : std::optional<std::int64_t>(1);
    std::vector<ShapedValue> next;
    for (std::size_t i = 0; i < carried.size(); ++i) next.push_back(result(loop.first_output() + i));
    out.scanned.resize(loop.scanned());
    for (std::size_t i = 0; i < out.scanned.size(); ++i) {
      const ShapedValue now = result(loop.first_output() + carried.size() + i);
      ShapedValue& widest = out.scanned[i];
      if (widest.kind == ShapedValue::Kind::unknown || weight_of(now) > weight_of(widest)) widest = now;
    }
    return next;
  };

  std::size_t said = 0;
  const std::int64_t before = work_;
  std::vector<ShapedValue> carried = loop.carried;
  std::int64_t largest = -1, largest_at = 0, done = 0;
  std::vector<ShapedValue> largest_carried = carried;
  bool by_data = false;
  const std::int64_t most = loop.trips.value_or(INT64_MAX);
  bool complete = most == 0;
  while (!complete) {
    std::int64_t weight = 0;
    for (const auto& v : carried) weight = checked_add(weight, weight_of(v));
    if (weight > largest) {
      largest = weight;
      largest_at = done;
      largest_carried = carried;
    }
    std::vector<ShapedValue> next = run(done, carried);
    ++done;
    if (done == 1) said = graph_.diagnostics.size();
    forget_diagnostics(graph_, said);
    by_data = by_data || !goes_on;
    carried = std::move(next);
    complete = done == most || (goes_on && *goes_on == 0 && !by_data);
    const std::int64_t each = (work_ - before) / done + 1;
    const bool cheap = loop.trips ? each <= exact_work / *loop.trips || done >= exact_work / each
                                  : done < most_exact_iterations && each * done < exact_work;
    if (!complete && (!cheap || (by_data && !loop.trips))) break;
  }
  if (complete) {
    if (done > 1 && largest_at + 1 != done) {
      run(largest_at, largest_carried);
      forget_diagnostics(graph_, said);
    }
    if (done == 0 && loop.scanned() > 0) run(0, carried);
    out.carried = std::move(carried);
    out.trips = done;
    out.trips_are_bound = by_data;
    return out;
  }

  // Too many iterations, or nobody knows how many: what a counter would tell is not known then.
  const auto opaque = [](std::vector<ShapedValue> values) {
    for (auto& v : values) v.contents = nullptr;
    return values;
  };
  const std::vector<ShapedValue> first = opaque(loop.carried);
  out.scanned.clear();
  const std::vector<ShapedValue> second = run(std::nullopt, first);
  out.carried = opaque(second);
  out.trips = loop.trips;
  out.trips_are_bound = true;
  if (std::equal(first.begin(), first.end(), second.begin(), second.end(), same_shape)) return out;

  if (!loop.trips) op.fail("a carried value changes its shape, and how often the loop runs depends on data");
  const auto after = [&](std::int64_t steps) {
    std::vector<ShapedValue> grown = first;
    for (std::size_t i = 0; i < grown.size(); ++i) {
      op.require(first[i].is_tensor() && second[i].is_tensor() && first[i].dims.size() == second[i].dims.size(),
                 "a carried value changes its kind or rank with every iteration");
      for (std::size_t a = 0; a < grown[i].dims.size(); ++a)
        grown[i].dims[a] = checked_add(first[i].dims[a], checked_mul(steps, second[i].dims[a] - first[i].dims[a]));
    }
    return grown;
  };
  const std::vector<ShapedValue> last = after(*loop.trips - 1), final = after(*loop.trips);
  const std::vector<ShapedValue> proof = run(std::nullopt, last);
  op.require(std::equal(final.begin(), final.end(), proof.begin(), proof.end(), same_shape),
             "a carried value does not grow evenly from one iteration to the next");
  std::int64_t first_weight = 0, last_weight = 0;
  for (const auto& v : first) first_weight = checked_add(first_weight, weight_of(v));
  for (const auto& v : last) last_weight = checked_add(last_weight, weight_of(v));
  if (first_weight > last_weight) run(std::nullopt, first);
  out.carried = final;
  return out;
}

/// Loop(M, condition, carried...) -> carried..., scanned... stacked on a new first axis.
void Inference::shape_loop(const NodeShaper& op, std::vector<ShapedNode>& nodes) {
  const Node& node = op.node();
  const Graph* body = node.graph("body");
  op.require(body != nullptr, "the body is missing");
  Iteration loop{*body, true, std::nullopt, {}, {}};
  if (op.has(0)) loop.trips = exact_integer(op.tensor(0));
  if (loop.trips && *loop.trips < 0) loop.trips = 0;
  if (op.has(1) && exact_integer(op.tensor(1)) == 0) loop.trips = 0;
  for (std::size_t i = 2; i < op.input_count(); ++i) loop.carried.push_back(op.value(i));

  Outcome out = iterate(op, loop);
  op.require(node.outputs.size() <= out.carried.size() + out.scanned.size(),
             "the body has fewer outputs than the node");
  if (!out.trips) {
    op.require(out.scanned.empty(),
               "how often the loop runs depends on data, and so does the size of what it collects");
    graph_.diagnostics.push_back({"loop-count-unknown", Severity::warning, std::string(node.name),
                                  "Loop: how often it runs depends on data; its body is counted once", Bytes{}});
  }
  const std::size_t carried = out.carried.size();
  for (std::size_t i = 0; i < carried; ++i) {
    if (out.trips_are_bound) out.carried[i].contents = nullptr;
    op.set_value(i, out.carried[i]);
  }
  for (std::size_t i = 0; i < out.scanned.size(); ++i) {
    op.require(out.scanned[i].is_tensor(), "what the loop collects is no tensor");
    op.set(carried + i, out.scanned[i].dtype, with_axis(out.scanned[i].dims, 0, *out.trips));
  }
  if (out.trips && out.trips_are_bound && !out.scanned.empty() && !loop.trips)
    op.bounded("how often the loop runs depends on data");
  nodes.push_back({&node, {out.body}, out.trips.value_or(1), out.trips.has_value() && out.trips_are_bound});
}

/// Scan(carried..., scanned...): since opset 9 without a batch axis; in 8 sequence lengths come first and axis 0 is the
/// batch, which the body does not see.
void Inference::shape_scan(const NodeShaper& op, std::vector<ShapedNode>& nodes) {
  const Node& node = op.node();
  const Graph* body = node.graph("body");
  op.require(body != nullptr, "the body is missing");
  const std::int64_t scans = node.integer("num_scan_inputs", 0);
  const bool batched = node.attribute("directions") != nullptr || graph_.model->opset() == 8;
  const std::size_t first = batched ? 1 : 0;
  op.require(scans > 0 && scans <= std::ssize(node.inputs) - static_cast<std::ptrdiff_t>(first),
             "num_scan_inputs is " + std::to_string(scans));
  const std::size_t carried = op.input_count() - first - static_cast<std::size_t>(scans);
  const auto input_axes = node.integers("scan_input_axes"), output_axes = node.integers("scan_output_axes");

  std::optional<std::int64_t> batch;
  const auto body_view = [&](ShapedValue v) {
    if (!batched) return v;
    op.require(!v.dims.empty(), "an input has no batch dimension");
    batch = v.dims[0];
    v.dims = without_axis(v.dims, 0);
    v.contents = nullptr;
    return v;
  };
  Iteration loop{*body, false, std::nullopt, {}, {}};
  for (std::size_t i = 0; i < carried; ++i) loop.carried.push_back(body_view(op.value(first + i)));
  for (std::size_t i = 0; i < static_cast<std::size_t>(scans); ++i) {
    ShapedValue v = body_view(op.tensor(first + carried + i));
    const std::size_t axis = op.axis(i < input_axes.size() ? input_axes[i] : 0, v.dims.size());
    const std::int64_t length = v.dims[axis];
    loop.trips = loop.trips ? op.same_size(*loop.trips, length, "the scanned lengths") : length;
    v.dims = without_axis(v.dims, axis);
    v.contents = nullptr;
    loop.slices.push_back(std::move(v));
  }
  // An empty scan still has outputs with a shape; the body is shaped for one step.
  Outcome out = iterate(op, loop);
  for (std::size_t i = 0; i < carried; ++i) {
    if (batched) out.carried[i].dims = with_axis(out.carried[i].dims, 0, *batch);
    op.set_value(i, out.carried[i]);
  }
  for (std::size_t i = 0; i < out.scanned.size(); ++i) {
    ShapedValue& v = out.scanned[i];
    op.require(v.is_tensor(), "what the scan collects is no tensor");
    const std::size_t axis = op.axis(i < output_axes.size() ? output_axes[i] : 0, v.dims.size() + 1);
    Dims dims = with_axis(v.dims, axis, *loop.trips);
    op.set(carried + i, v.dtype, batched ? with_axis(dims, 0, *batch) : dims);
  }
  nodes.push_back({&node, {out.body}, *loop.trips, false});
}

/// SequenceMap(sequence, more...): the body on every element; further sequences go along, tensors stay.
void Inference::shape_sequence_map(const NodeShaper& op, std::vector<ShapedNode>& nodes) {
  const Node& node = op.node();
  const Graph* body = node.graph("body");
  op.require(body != nullptr, "the body is missing");
  op.require(body->inputs.size() == op.input_count(), "the body and the node differ in their inputs");
  op.require(body->outputs.size() >= op.output_count(), "the body has fewer outputs than the node");
  const std::size_t length = op.sequence(0).size();
  std::vector<std::vector<ShapedValue>> results(op.output_count());
  ShapedNode shaped{&node, {}, static_cast<std::int64_t>(length), false};
  std::size_t said = 0;
  for (std::size_t e = 0; e < length; ++e) {
    for (std::size_t i = 0; i < op.input_count(); ++i) {
      const ShapedValue& v = op.value(i);
      const bool walks = v.kind == ShapedValue::Kind::sequence;
      op.require(!walks || v.elements->size() == length, "the sequences differ in length");
      graph_.values[body->inputs[i].value.at()] = walks ? (*v.elements)[e] : v;
    }
    shaped.bodies = {shape_body(*body)};
    if (e == 0) said = graph_.diagnostics.size();
    forget_diagnostics(graph_, said);
    for (std::size_t i = 0; i < results.size(); ++i) results[i].push_back(graph_.at(body->outputs[i].value));
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const DType dtype = results[i].empty() ? body->outputs[i].type.dtype : results[i].front().dtype;
    op.set_sequence(i, dtype, std::move(results[i]));
  }
  nodes.push_back(std::move(shaped));
}

}  // namespace headroom
