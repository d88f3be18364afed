#include "estimator/plan/estimate.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>

#include "estimator/allocate/async.h"
#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/plan/device_memory.h"
#include "estimator/recover/recover.h"
#include "estimator/shadow/shadow.h"
#include "estimator/step/session.h"

namespace headroom {
namespace {

/// Steps that are run when the scenario names none: the state of iteration 2 is steady (design, section 1).
constexpr int steady_steps = 3;
/// Tensors listed at the peak.
constexpr std::size_t listed_tensors = 20;

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

shadow::DeviceFacts device_facts(const Scenario& s) {
  shadow::DeviceFacts d;
  d.sm_count = s.device.sm_count;
  d.threads_per_sm = s.device.threads_per_sm;
  d.compute_major = s.device.compute_major;
  d.compute_minor = s.device.compute_minor;
  // aten/src/ATen/cuda/CublasHandlePool.cpp, getChosenWorkspaceSize: :4096:8 on Hopper, else :4096:2:16:8.
  d.cublas_workspace = s.device.compute_major == 9 ? Bytes(32 * MiB) : Bytes(8 * MiB + 128 * KiB);
  d.attention = s.attention;
  d.tf32 = s.precision == Precision::tf32;
  return d;
}

std::string text_at(const shadow::Trace& t, std::int32_t i) {
  return i >= 0 ? t.texts[static_cast<std::size_t>(i)] : std::string();
}

ModelFacts facts_of(const Model& model, const Program& program, const Scenario& s) {
  ModelFacts f;
  f.name = model.path.filename().string();
  f.nodes = static_cast<std::int64_t>(model.graph().nodes.size());
  f.hash = model.hash;
  const auto trainable = trainable_parameters(program, s);
  const DType cast = s.module_dtype();
  for (std::size_t i = 0; i < program.parameters.size(); ++i) {
    const Parameter& p = program.parameters[i];
    const std::int64_t n = element_count(p.dims);
    const Bytes bytes = bytes_of(cast != DType::undefined && is_float(p.dtype) ? cast : p.dtype, n);
    if (p.buffer) {
      f.buffer_bytes += bytes;
      continue;
    }
    f.parameters = checked_add(f.parameters, n);
    if (trainable[i]) f.trainable = checked_add(f.trainable, n);
    f.weight_bytes += bytes;
  }
  return f;
}

/// Of the allocation that is event `event`.
RunPlace place_of(const shadow::Trace& trace, std::size_t event, const Program& program) {
  const auto& block = trace.blocks[static_cast<std::size_t>(trace.events[event].index)];
  return {.phase = block.phase,
          .step = block.step,
          .node = text_at(trace, block.site >= 0 ? block.site : block.name),
          .op = text_at(trace, block.op),
          .module = std::string(program.module_path(block.module))};
}

void describe_peak(Estimate& e, const shadow::Trace& trace, const Timeline& t, const Program& program) {
  const std::size_t at = t.peak_event;
  Bytes sum;
  std::vector<LiveBlock> live = live_blocks(trace, at);
  for (const LiveBlock& b : live) {
    const Bytes bytes = trace.blocks[static_cast<std::size_t>(b.block)].bytes;
    e.categories[static_cast<std::size_t>(b.category)] += bytes;
    sum += bytes;
  }
  e.rounding = t.allocated_peak - sum;
  if (trace.events.empty()) return;
  e.at = place_of(trace, at, program);
  const std::size_t shown = std::min(listed_tensors, live.size());
  std::partial_sort(live.begin(), live.begin() + static_cast<std::ptrdiff_t>(shown), live.end(),
                    [&](const LiveBlock& a, const LiveBlock& b) {
                      const auto &x = trace.blocks[static_cast<std::size_t>(a.block)],
                                 &y = trace.blocks[static_cast<std::size_t>(b.block)];
                      return x.bytes != y.bytes ? x.bytes > y.bytes : a.block < b.block;
                    });
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& b = trace.blocks[static_cast<std::size_t>(live[i].block)];
    e.largest.push_back({.bytes = b.bytes,
                         .category = live[i].category,
                         .name = b.name >= 0 ? text_at(trace, b.name) : text_at(trace, b.site),
                         .op = text_at(trace, b.op),
                         .module = std::string(program.module_path(b.module))});
  }
}

void add_resident(Estimate& e, const shadow::Trace& trace) {
  // Optimizer state and gradients, whenever they live: each block once.
  for (const auto& b : trace.blocks)
    if (b.category == Category::optimizer_state) e.optimizer_state_bytes += b.bytes;
  Bytes now;
  std::vector<char> gradient(trace.blocks.size());
  for (const auto& ev : trace.events) {
    const auto i = static_cast<std::size_t>(ev.index);
    if (ev.kind == shadow::TraceEvent::Kind::becomes && ev.category == Category::gradients && !gradient[i]) {
      gradient[i] = 1;
      now += trace.blocks[i].bytes;
      e.gradient_bytes = std::max(e.gradient_bytes, now);
    } else if (ev.kind == shadow::TraceEvent::Kind::free && gradient[i]) {
      gradient[i] = 0;
      now -= trace.blocks[i].bytes;
    }
  }
}

void add_margin(Estimate& e, std::string code, Bytes allocated, Bytes reserved, Bytes device) {
  e.margins.push_back({std::move(code), allocated, reserved, device});
  e.margin_allocated += allocated;
  e.margin_reserved += reserved;
  e.margin_device += device;
}

void add_margins(Estimate& e, const DeviceMemory& memory) {
  std::vector<std::pair<std::string, Bytes>> by_code;
  for (const Diagnostic& d : e.diagnostics) {
    if (d.bound.count() == 0) continue;
    const auto found = std::find_if(by_code.begin(), by_code.end(), [&](const auto& c) { return c.first == d.code; });
    if (found == by_code.end())
      by_code.emplace_back(d.code, d.bound);
    else
      found->second += d.bound;
  }
  for (const auto& [code, bytes] : by_code) {
    const Bytes segment = bytes.rounded_up(2 * MiB);
    add_margin(e, code, bytes, segment, segment);
  }
  if (memory.uncertainty.count() > 0) add_margin(e, "context", {}, {}, memory.uncertainty);
}

/// Inference drops its outputs unless the scenario says otherwise; a loop that keeps them holds the last ones too.
void note_outputs(Estimate& e, const Program& program) {
  if (e.scenario.training() || e.scenario.outputs) return;
  Bytes kept;
  const DType cast = e.scenario.module_dtype();
  for (const ProgramOutput& o : program.outputs)
    kept += bytes_of(cast != DType::undefined && is_float(o.dtype) ? cast : o.dtype, element_count(o.dims));
  e.diagnostics.push_back({.code = "outputs-assumed",
                           .severity = Severity::info,
                           .node = {},
                           .message = "outputs are dropped before the next forward; --outputs keep holds them longer",
                           .bound = kept});
}

/// What the rules still missed on the measured runs (tests/truth/accuracy.md, p95 of each figure's error), over and
/// above the parts that are named.
void add_residual(Estimate& e, const Timeline& t, AllocatorBackend backend) {
  const auto share = [](Bytes b, std::int64_t per_mille) { return Bytes(b.count() / 1000 * per_mille); };
  const Bytes allocated = share(t.allocated_peak, 4) + Bytes(1 * MiB),
              reserved = share(t.reserved_peak, 20) + Bytes(20 * MiB);
  add_margin(e, "measured-residual", allocated, reserved, reserved);
  if (backend == AllocatorBackend::native) return;
  const Bytes bound(
      static_cast<std::int64_t>(AsyncAllocator::reserved_bound * static_cast<double>(t.reserved_peak.count())));
  add_margin(e, "async-reserved", {}, bound, bound);
  e.diagnostics.push_back(
      {.code = "async-reserved",
       .severity = Severity::info,
       .node = {},
       .message = "cudaMallocAsync: reserved is a model of the driver's pool, bounded by measurement"});
}

/// Runs the trace on the scenario's card: the figures' timeline, and whether it fits with the margin held back.
void run_on_device(Estimate& e, Stages& s, const DeviceMemory& memory) {
  AllocatorOptions options = allocator_options(e.scenario);
  const auto run = [&](const AllocatorDevice& device) {
    return run_timeline(*s.trace, *make_allocator(options, device));
  };
  const Bytes total = e.scenario.device.total_bytes;
  s.device = {.total = total, .outside = memory.context};
  s.timeline = run(s.device);
  if (total.count() == 0) {
    add_residual(e, s.timeline, options.backend);
    return;
  }
  const double fraction = options.per_process_memory_fraction;
  const Bytes allowed =
      std::min(total - memory.context, Bytes(static_cast<std::int64_t>(fraction * static_cast<double>(total.count()))));
  e.out_of_memory = s.timeline.out_of_memory;
  if (e.out_of_memory) {
    e.oom_text = s.timeline.oom.text;
    e.oom_at = place_of(*s.trace, s.timeline.oom_event, *s.programs[0]);
    options.per_process_memory_fraction = 1;
    s.device.total = {};
    s.timeline = run(s.device);
  }
  add_residual(e, s.timeline, options.backend);
  e.spare = allowed - s.timeline.reserved_peak - e.margin_device;
  // Short of memory the allocator may still get along, with less in its cache.
  e.fits = !e.out_of_memory &&
           (e.spare.count() >= 0 || !run({.total = total, .outside = memory.context + e.margin_device}).out_of_memory);
  if (*e.fits) e.spare = std::max(e.spare, Bytes());
}

}  // namespace

AllocatorOptions allocator_options(const Scenario& scenario) {
  return parse_allocator_options(scenario.alloc_conf, parse_torch_version(scenario.torch_version));
}

Estimate estimate(const std::filesystem::path& path, const Scenario& scenario, Stages* stages,
                  std::shared_ptr<const Model> model) {
  const auto start = std::chrono::steady_clock::now();
  Estimate e;
  e.scenario = scenario;
  Stages own;
  Stages& s = stages ? *stages : own;
  s = {};
  s.model = model ? std::move(model) : std::make_shared<const Model>(read_model(path));
  const RecoverOptions options{.training = scenario.training()};
  const auto add_program = [&](const Bindings& b) {
    s.graphs.push_back(std::make_shared<const ShapedGraph>(bind(*s.model, b)));
    s.programs.push_back(std::make_shared<const Program>(recover(*s.graphs.back(), options)));
  };
  std::vector<const Program*> order;
  if (scenario.sequences.empty()) {
    add_program(bindings_of(scenario, {}));
    order.push_back(s.programs[0].get());
  } else {
    std::unordered_map<std::int64_t, std::size_t> by_length;
    const ShapedGraph first = bind(*s.model, bindings_of(scenario, scenario.sequences.front()));
    for (const auto length : scenario.sequences) {
      const auto [it, fresh] = by_length.try_emplace(length, s.programs.size());
      if (fresh) add_program(rebound(scenario, first, length));
      order.push_back(s.programs[it->second].get());
    }
  }
  const auto take = [&e](const Diagnostics& d) { e.diagnostics.insert(e.diagnostics.end(), d.begin(), d.end()); };
  take(s.model->diagnostics);
  take(s.graphs[0]->diagnostics);
  take(s.programs[0]->diagnostics);
  const Program& program = *s.programs[0];
  if (program.outputs.empty()) throw bad_input("the graph has no output that depends on its inputs", path.string());

  const aten::ChosenTable table = aten::table_for(scenario.torch_version);
  if (!table.exact)
    e.diagnostics.push_back({.code = "torch-version",
                             .severity = Severity::warning,
                             .node = {},
                             .message = "no table for torch " + scenario.torch_version + ": the rules of " +
                                        std::string(table.table->version()) + " are used"});
  shadow::Shadow machine(*table.table, device_facts(scenario));
  const int steps = scenario.steps > 0            ? static_cast<int>(scenario.steps)
                    : !scenario.sequences.empty() ? static_cast<int>(scenario.sequences.size())
                                                  : steady_steps;
  run_session(machine, order, scenario, steps, e.diagnostics);
  take(machine.diagnostics);
  s.trace = std::make_shared<const shadow::Trace>(machine.take_trace());

  const DeviceMemory memory = device_memory(scenario.device);
  note_outputs(e, program);
  add_margins(e, memory);
  run_on_device(e, s, memory);

  e.model = facts_of(*s.model, program, scenario);
  e.dims = s.graphs[0]->dims;
  e.phases = s.timeline.phases;
  e.peak_allocated = s.timeline.allocated_peak;
  e.peak_reserved = s.timeline.reserved_peak;
  e.context = memory.context;
  e.peak_device = e.peak_reserved + memory.context;
  e.fragmentation = e.peak_reserved - e.peak_allocated;
  describe_peak(e, *s.trace, s.timeline, program);
  add_resident(e, *s.trace);
  e.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return e;
}

}  // namespace headroom
