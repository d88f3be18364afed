#include "estimator/step/checkpoint.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "estimator/base/error.h"
#include "estimator/base/text.h"

namespace headroom {
namespace {

void run_calls(Machine& m, const Program& p, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    const Call& c = p.calls[i];
    if (c.autocast_off) m.suspend_autocast();
    m.call(p.name_of(c.op), c.args, c.outputs, {c.module, c.site});
    if (c.autocast_off) m.resume_autocast();
    for (const SlotId s : c.drops) m.drop(s);
  }
}

bool inside(std::string_view path, std::string_view module) {
  return path.starts_with(module) && (path.size() == module.size() || path[module.size()] == '.');
}

/// "h" of "h.3"; empty when the path does not end in a number.
std::string_view list_of(std::string_view path) {
  const auto dot = path.rfind('.');
  const auto last = dot == std::string_view::npos ? path : path.substr(dot + 1);
  if (last.empty() || !parse_int(last)) return {};
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

struct SegmentUse {
  Slots inputs, outputs, inner;
};

/// What a range reads from outside, makes for outside, and writes.
SegmentUse use_of(const Program& p, const SegmentRange& r) {
  std::vector<char> written(p.slot_count()), read(p.slot_count());
  std::vector<char> parameter(p.slot_count());
  for (const auto& q : p.parameters) parameter[q.slot.at()] = 1;
  SegmentUse use;
  for (std::size_t i = r.begin; i < r.end; ++i) {
    for_each_read(p.calls[i], [&](SlotId s) {
      if (written[s.at()] || read[s.at()] || parameter[s.at()]) return;
      read[s.at()] = 1;
      use.inputs.push_back(s);
    });
    for (const SlotId s : p.calls[i].outputs)
      if (s.valid() && !written[s.at()]) {
        written[s.at()] = 1;
        use.inner.push_back(s);
      }
  }
  std::vector<char> out(p.slot_count());
  for (std::size_t i = r.end; i < p.calls.size(); ++i)
    for_each_read(p.calls[i], [&](SlotId s) {
      if (written[s.at()] && !out[s.at()]) {
        out[s.at()] = 1;
        use.outputs.push_back(s);
      }
    });
  return use;
}

}  // namespace

std::vector<std::string> block_modules(const Program& program) {
  // Lists of numbered siblings with one class (or no class known), by how many calls they hold.
  struct List {
    std::vector<std::string> members;
    std::string class_name;
    bool mixed = false;
  };
  std::map<std::string, List> lists;
  std::unordered_map<std::string, bool> seen;
  for (const Call& c : program.calls) {
    std::string_view path = program.module_path(c.module);
    while (!path.empty()) {
      if (seen.try_emplace(std::string(path), true).second && parse_int(path.substr(path.rfind('.') + 1))) {
        List& l = lists[std::string(list_of(path))];
        l.members.emplace_back(path);
      }
      const auto dot = path.rfind('.');
      path = dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
    }
  }
  std::unordered_map<std::string_view, std::string_view> class_of;
  for (const Module& m : program.modules) class_of[m.path] = m.class_name;
  std::vector<std::string> blocks;
  for (auto& [path, l] : lists) {
    if (l.members.size() < 2) continue;
    std::string_view first = class_of[l.members.front()];
    const bool same =
        std::all_of(l.members.begin(), l.members.end(), [&](const auto& m) { return class_of[m] == first; });
    // A Sequential of different layers is no list of blocks; nor are the projections inside one block.
    if (!same || first.ends_with("Linear") || first.find("Conv2d") != std::string_view::npos) continue;
    if (std::any_of(blocks.begin(), blocks.end(), [&](const auto& b) { return inside(path, b); })) continue;
    blocks.insert(blocks.end(), l.members.begin(), l.members.end());
  }
  return blocks;
}

std::vector<SegmentRange> segments_of_modules(const Program& program, const std::vector<std::string>& modules) {
  std::vector<SegmentRange> out;
  std::string_view current;
  for (std::size_t i = 0; i < program.calls.size(); ++i) {
    const std::string_view path = program.module_path(program.calls[i].module);
    if (!current.empty() && inside(path, current)) {
      out.back().end = i + 1;
      continue;
    }
    current = {};
    for (const auto& m : modules)
      if (inside(path, m)) {
        current = m;
        out.push_back({i, i + 1, false});
        break;
      }
  }
  return out;
}

void run_forward(Machine& machine, const Program& program, const Scenario& scenario) {
  if (scenario.checkpoint == CheckpointKind::none || !scenario.training()) {
    run_calls(machine, program, 0, program.calls.size());
    return;
  }
  if (scenario.checkpoint == CheckpointKind::plan)
    throw Error(Exit::not_modelled, "checkpoint plans are not modelled yet", scenario.checkpoint_plan,
                "use --checkpoint blocks or none");
  const auto modules = block_modules(program);
  if (modules.empty())
    throw usage_error("--checkpoint blocks: this file names no repeated blocks", "",
                      "export with module scopes, or use --checkpoint none");
  run_forward(machine, program, segments_of_modules(program, modules));
}

void run_forward(Machine& machine, const Program& program, const std::vector<SegmentRange>& segments) {
  std::size_t at = 0;
  for (const SegmentRange& r : segments) {
    run_calls(machine, program, at, r.begin);
    SegmentUse use = use_of(program, r);
    CheckpointSegment segment{r.reentrant, std::move(use.inputs), std::move(use.outputs), std::move(use.inner),
                              [&machine, &program, r] { run_calls(machine, program, r.begin, r.end); }};
    machine.enter_checkpoint(segment);
    run_calls(machine, program, r.begin, r.end);
    machine.leave_checkpoint();
    at = r.end;
  }
  run_calls(machine, program, at, program.calls.size());
}

}  // namespace headroom
