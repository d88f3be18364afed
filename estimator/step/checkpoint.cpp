#include "estimator/step/checkpoint.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "estimator/base/error.h"
#include "estimator/base/text.h"

namespace headroom {
namespace {

/// Of segments inside segments.
constexpr std::size_t deepest_nesting = 16;

bool inside(std::string_view path, std::string_view module) {
  return path.starts_with(module) && (path.size() == module.size() || path[module.size()] == '.');
}

/// A module of a numbered list.
struct Member {
  std::string path;
  std::string_view class_name;   ///< "" where the file does not say
  std::string_view first_child;  ///< the module inside it that is called first; "" for a layer
};

/// The members that are blocks, which have modules inside: all of them, where they are of one class, or made alike
/// where no class is known; else the largest group that is made alike, of named parts (between blocks stand stems,
/// downsampling layers, containers).
std::vector<std::string> repeated(const std::vector<Member>& members) {
  const auto alike = [&](const Member& m) {
    return m.class_name == members[0].class_name && (!m.class_name.empty() || m.first_child == members[0].first_child);
  };
  std::map<std::string_view, std::vector<std::string>> groups;
  if (std::all_of(members.begin(), members.end(), alike)) {
    for (const Member& m : members)
      if (!m.first_child.empty()) groups[""].push_back(m.path);
  } else {
    for (const Member& m : members)
      if (!m.first_child.empty() && !parse_int(m.first_child)) groups[m.first_child].push_back(m.path);
  }
  std::vector<std::string> most;
  for (auto& [child, paths] : groups)
    if (paths.size() > std::max<std::size_t>(most.size(), 1)) most = std::move(paths);
  return most;
}

/// The call ranges inside a module: one for each time that it is called.
std::vector<SegmentRange> ranges_of(const Program& program, std::string_view module) {
  std::vector<SegmentRange> out;
  bool open = false;
  for (std::size_t i = 0; i < program.calls.size(); ++i) {
    const bool in = inside(program.module_path(program.calls[i].module), module);
    if (in && !open) out.push_back({.begin = i});
    if (in) out.back().end = i + 1;
    open = in;
  }
  return out;
}

Error no_such_module(const Program& program, const std::string& module, const std::string& source) {
  std::vector<std::string> names{"none", "blocks"};
  for (const Module& m : program.modules)
    for (std::string_view path = m.path; !path.empty();) {
      names.emplace_back(path);
      const auto dot = path.rfind('.');
      path = dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
    }
  const auto near = nearest(module, names);
  return usage_error("--checkpoint: this file has no module '" + printable(module) + "'", source,
                     near.empty() ? "none, blocks, a plan's PLAN.json, or module paths with commas between them; "
                                    "`headroom inspect --stage program` lists the modules"
                                  : "did you mean '" + printable(near) + "'?");
}

/// The plan's segments as call ranges.
std::vector<SegmentRange> ranges_of(const Program& program, const CheckpointPlan& plan) {
  const std::size_t calls = program.calls.size();
  if (plan.calls != 0 && plan.calls != calls)
    throw usage_error("--checkpoint: the plan was made for a program of " + std::to_string(plan.calls) +
                          " calls, this one has " + std::to_string(calls),
                      plan.source, "plan again for this file and task, or name modules");
  std::vector<SegmentRange> out;
  for (const PlannedSegment& s : plan.segments) {
    std::vector<SegmentRange> found;
    if (s.modules.empty()) {
      if (s.begin >= s.end || s.end > calls)
        throw usage_error("--checkpoint: there are no calls [" + std::to_string(s.begin) + ", " +
                              std::to_string(s.end) + ") in a program of " + std::to_string(calls),
                          plan.source, "a range begins below its end; the first call is 0");
      found.push_back({.begin = s.begin, .end = s.end});
    }
    for (const std::string& module : s.modules) {
      const auto one = ranges_of(program, module);
      if (one.empty()) throw no_such_module(program, module, plan.source);
      if (s.modules.size() == 1 || found.empty())
        found = one;
      else
        found = {{.begin = std::min(found.front().begin, one.front().begin),
                  .end = std::max(found.back().end, one.back().end)}};
    }
    for (SegmentRange& r : found) {
      r.reentrant = s.reentrant;
      r.save = s.save;
      out.push_back(std::move(r));
    }
  }
  return out;
}

/// Outer before inner; throws when two overlap and neither holds the other.
void put_in_order(std::vector<SegmentRange>& ranges, const std::string& source) {
  std::stable_sort(ranges.begin(), ranges.end(), [](const SegmentRange& a, const SegmentRange& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  std::vector<const SegmentRange*> open;
  for (const SegmentRange& r : ranges) {
    while (!open.empty() && open.back()->end <= r.begin) open.pop_back();
    const auto text = [](const SegmentRange& s) {
      return "[" + std::to_string(s.begin) + ", " + std::to_string(s.end) + ")";
    };
    if (!open.empty() && open.back()->end < r.end)
      throw usage_error("--checkpoint: the segments of calls " + text(*open.back()) + " and " + text(r) + " overlap",
                        source, "one segment may lie inside another, or beside it");
    if (!open.empty() && (!r.save.empty() || !open.back()->save.empty()))
      throw Error(Exit::not_modelled, "--checkpoint: selective segments inside others are not modelled", source,
                  "give `save` to a segment that stands alone");
    open.push_back(&r);
    if (open.size() > deepest_nesting)
      throw usage_error("--checkpoint: segments are nested deeper than " + std::to_string(deepest_nesting), source);
  }
}

/// What a range reads from outside, makes for outside, and writes.
class Uses {
 public:
  explicit Uses(const Program& p)
      : program_(p), last_read_(p.slot_count()), parameter_(p.slot_count()), seen_(p.slot_count()) {
    for (const auto& q : p.parameters) parameter_[q.slot.at()] = 1;
    for (std::size_t i = 0; i < p.calls.size(); ++i)
      for_each_read(p.calls[i], [&](SlotId s) { last_read_[s.at()] = i + 1; });
    for (const ProgramOutput& o : p.outputs) last_read_[o.slot.at()] = p.calls.size() + 1;
  }

  void of(const SegmentRange& r, CheckpointSegment& s) {
    ++segments_;
    for (std::size_t i = r.begin; i < r.end; ++i) {
      for_each_read(program_.calls[i], [&](SlotId slot) {
        if (!parameter_[slot.at()] && std::exchange(seen_[slot.at()], segments_) != segments_) s.inputs.push_back(slot);
      });
      for (const SlotId slot : program_.calls[i].outputs) {
        if (!slot.valid() || std::exchange(seen_[slot.at()], segments_) == segments_) continue;
        s.inner.push_back(slot);
        if (last_read_[slot.at()] > r.end) s.outputs.push_back(slot);
      }
    }
  }

  /// Values from outside of which the range reads nothing but the dtype; after of() for the same range.
  Slots dtypes_only(const SegmentRange& r) {
    Slots out;
    for (std::size_t i = r.begin; i < r.end; ++i)
      for (const Arg& a : program_.calls[i].args)
        if (const auto* d = std::get_if<DTypeOf>(&a))
          if (!parameter_[d->slot.at()] && std::exchange(seen_[d->slot.at()], segments_) != segments_)
            out.push_back(d->slot);
    return out;
  }

 private:
  const Program& program_;
  std::vector<std::size_t> last_read_;  ///< by slot: 1 + the last call that reads it
  std::vector<char> parameter_;
  std::vector<std::uint32_t> seen_;  ///< by slot: the last segment it was seen in
  std::uint32_t segments_ = 0;
};

}  // namespace

std::vector<std::string> block_modules(const Program& program) {
  std::unordered_map<std::string_view, std::string_view> class_of, first_child;
  for (const Module& m : program.modules) class_of[m.path] = m.class_name;
  std::map<std::string_view, std::vector<Member>> lists;
  std::unordered_set<std::string_view> seen;
  for (const Call& c : program.calls)
    for (std::string_view path = program.module_path(c.module); !path.empty() && seen.insert(path).second;) {
      const auto dot = path.rfind('.');
      const std::string_view last = dot == std::string_view::npos ? path : path.substr(dot + 1);
      const std::string_view holder = dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
      if (parse_int(last)) lists[holder].push_back({std::string(path), {}, {}});
      first_child.try_emplace(holder, last);
      path = holder;
    }
  std::vector<std::string> blocks;
  for (auto& [path, members] : lists) {
    if (std::any_of(blocks.begin(), blocks.end(), [&](const auto& b) { return inside(path, b); })) continue;
    for (Member& m : members) {
      m.class_name = class_of[m.path];
      m.first_child = first_child[m.path];
    }
    for (std::string& m : repeated(members)) blocks.push_back(std::move(m));
  }
  return blocks;
}

std::vector<SegmentRange> checkpointed_ranges(const Program& program, const Scenario& scenario) {
  if (!scenario.training()) return {};
  std::vector<SegmentRange> out;
  switch (scenario.checkpoint) {
    case CheckpointKind::none:
      break;
    case CheckpointKind::plan:
      out = ranges_of(program, scenario.checkpoint_plan);
      break;
    case CheckpointKind::blocks:
      const auto modules = block_modules(program);
      if (modules.empty())
        throw usage_error("--checkpoint blocks: this file names no repeated blocks", "",
                          "name modules (--checkpoint encoder,decoder), or let `headroom checkpoint` plan");
      for (const std::string& m : modules)
        for (const SegmentRange& r : ranges_of(program, m)) out.push_back(r);
  }
  put_in_order(out, scenario.checkpoint_plan.source);
  return out;
}

ForwardPass::ForwardPass(Machine& machine, const Program& program, std::vector<SegmentRange> ranges)
    : machine_(machine), program_(program), ranges_(std::move(ranges)) {
  Uses uses(program);
  segments_.resize(ranges_.size());
  dtypes_of_.resize(ranges_.size());
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    CheckpointSegment& s = segments_[i];
    s.reentrant = ranges_[i].reentrant;
    s.save = ranges_[i].save;
    uses.of(ranges_[i], s);
    dtypes_of_[i] = uses.dtypes_only(ranges_[i]);
    s.rerun = [this, i] { run(ranges_[i].begin, ranges_[i].end, i + 1); };
  }
}

void ForwardPass::run() { run(0, program_.calls.size(), 0); }

void ForwardPass::run(std::size_t begin, std::size_t end, std::size_t segment) {
  while (segment < ranges_.size() && ranges_[segment].begin < end) {
    const SegmentRange& r = ranges_[segment];
    run_calls(begin, r.begin);
    for (const SlotId slot : dtypes_of_[segment])
      if (machine_.holds(slot)) dtypes_[slot.index] = machine_.dtype(slot);
    machine_.enter_checkpoint(segments_[segment]);
    run(r.begin, r.end, segment + 1);
    machine_.leave_checkpoint();
    begin = r.end;
    while (segment < ranges_.size() && ranges_[segment].begin < r.end) ++segment;
  }
  run_calls(begin, end);
}

std::span<const Arg> ForwardPass::arguments(const Call& call) {
  const auto gone = [&](const Arg& a) {
    const auto* d = std::get_if<DTypeOf>(&a);
    return d != nullptr && !machine_.holds(d->slot) && dtypes_.contains(d->slot.index);
  };
  if (dtypes_.empty() || std::none_of(call.args.begin(), call.args.end(), gone)) return call.args;
  arguments_ = call.args;
  for (Arg& a : arguments_)
    if (gone(a)) a = dtypes_.at(std::get<DTypeOf>(a).slot.index);
  return arguments_;
}

void ForwardPass::run_calls(std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    const Call& c = program_.calls[i];
    if (c.autocast_off) machine_.suspend_autocast();
    machine_.call(program_.name_of(c.op), arguments(c), c.outputs, {c.module, c.site});
    if (c.autocast_off) machine_.resume_autocast();
    for (const SlotId s : c.drops) machine_.drop(s);
  }
}

}  // namespace headroom
