#include "estimator/plan/snapshot.h"

#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "estimator/allocate/snapshot_writer.h"
#include "estimator/base/error.h"

namespace headroom {
namespace {

using shadow::TraceEvent;

bool temporary(Category c) {
  return c == Category::forward_temporaries || c == Category::backward_temporaries ||
         c == Category::optimizer_temporaries;
}

/// One category for the whole life of a block: the last that is more than a temporary, else that of its birth.
std::vector<Category> categories_of(const shadow::Trace& trace) {
  std::vector<Category> out;
  for (const auto& b : trace.blocks) out.push_back(b.category);
  for (const TraceEvent& e : trace.events)
    if (e.kind == TraceEvent::Kind::becomes && !temporary(e.category))
      out[static_cast<std::size_t>(e.index)] = e.category;
  return out;
}

/// Gives each block of the trace a stack, and each stack its category.
class Stacks {
 public:
  Stacks(const shadow::Trace& trace, const Program& program, std::string file, History& history)
      : trace_(trace), program_(program), file_(std::move(file)), history_(history) {}

  std::int32_t of(const shadow::TraceBlock& b, Category category) {
    const auto [known, is_new] = stacks_.try_emplace({b.module, b.site, b.op, b.name, b.phase, category},
                                                     static_cast<std::int32_t>(stacks_.size()));
    if (is_new) {
      history_.stacks.push_back(stack_of(b));
      categories.emplace_back(name_of(category));
    }
    return known->second;
  }

  std::vector<std::string> categories;  ///< by stack

 private:
  std::string text(std::int32_t i) const { return i >= 0 ? trace_.texts[static_cast<std::size_t>(i)] : std::string(); }

  /// Innermost first: operator and node, module, the modules around it, phase.
  std::vector<std::uint32_t> stack_of(const shadow::TraceBlock& b) {
    std::vector<std::uint32_t> stack;
    std::string call = text(b.op);
    for (const std::string& part : {text(b.name), text(b.site)})
      if (!part.empty()) call += (call.empty() ? "" : " ") + part;
    if (!call.empty()) stack.push_back(frame(call));
    for (std::string path(program_.module_path(b.module)); !path.empty();) {
      stack.push_back(frame(path));
      const auto dot = path.rfind('.');
      path.resize(dot == std::string::npos ? 0 : dot);
    }
    stack.push_back(frame(std::string(name_of(b.phase))));
    return stack;
  }

  std::uint32_t frame(const std::string& name) {
    const auto [known, is_new] = frames_.try_emplace(name, static_cast<std::uint32_t>(history_.frames.size()));
    if (is_new) history_.frames.push_back({file_, 0, name});
    return known->second;
  }

  const shadow::Trace& trace_;
  const Program& program_;
  const std::string file_;
  History& history_;
  std::map<std::tuple<ModuleId, std::int32_t, std::int32_t, std::int32_t, Phase, Category>, std::int32_t> stacks_;
  std::unordered_map<std::string, std::uint32_t> frames_;
};

}  // namespace

std::string snapshot_of(const Stages& stages, const Scenario& scenario) {
  AllocatorOptions options = allocator_options(scenario);
  if (options.backend != AllocatorBackend::native)
    throw usage_error("a snapshot needs the native allocator", "--snapshot",
                      "PyTorch takes no snapshot of cudaMallocAsync either");
  if (stages.device.total.count() == 0) options.per_process_memory_fraction = 1;
  const shadow::Trace& trace = *stages.trace;
  History history;
  history.alloc_conf = scenario.alloc_conf;
  Stacks stacks(trace, *stages.programs[0], stages.model->path.filename().string(), history);
  const std::vector<Category> categories = categories_of(trace);
  Recording recording;
  for (std::size_t i = 0; i < trace.blocks.size(); ++i)
    recording.contexts.push_back(stacks.of(trace.blocks[i], categories[i]));
  const auto allocator = make_allocator(options, stages.device);
  Timeline timeline = run_timeline(trace, *allocator, &recording);
  history.entries = std::move(recording.trace.entries);
  history.segments = std::move(timeline.segments);
  return snapshot_pickle(history, options, stacks.categories);
}

}  // namespace headroom
