#include "estimator/recover/finish.h"

#include <algorithm>

#include "estimator/recover/modules/packed_sequence.h"

namespace headroom::recovery {

namespace {

template <class F>
void for_each_slot(Call& call, F&& f) {
  for (Arg& a : call.args) {
    if (auto* s = std::get_if<SlotId>(&a)) {
      f(*s);
    } else if (auto* list = std::get_if<Slots>(&a)) {
      for (SlotId& one : *list) f(one);
    } else if (auto* dtype = std::get_if<DTypeOf>(&a)) {
      f(dtype->slot);
    }
  }
  for (SlotId& s : call.outputs) f(s);
  for (SlotId& s : call.drops) f(s);
}

}  // namespace

void remove_dead_calls(Recovery& r) {
  Program& p = r.program;
  std::vector<bool> read(p.slot_count(), false);
  for (const ProgramOutput& o : p.outputs)
    if (o.slot.valid()) read[o.slot.at()] = true;
  std::vector<bool> alive(p.calls.size(), false);
  for (std::size_t i = p.calls.size(); i-- > 0;) {
    const Call& c = p.calls[i];
    alive[i] = r.origin(i).effect ||
               std::any_of(c.outputs.begin(), c.outputs.end(), [&](SlotId s) { return s.valid() && read[s.at()]; });
    if (alive[i]) for_each_read(c, [&](SlotId s) { read[s.at()] = true; });
  }
  std::size_t kept = 0;
  std::vector<CallOrigin>& origins = r.call_origins();
  for (std::size_t i = 0; i < p.calls.size(); ++i) {
    if (!alive[i]) continue;
    if (kept != i) {
      p.calls[kept] = std::move(p.calls[i]);
      origins[kept] = origins[i];
    }
    for (SlotId& s : p.calls[kept].outputs)
      if (s.valid() && !read[s.at()] && p.calls[kept].outputs.size() > 1 && !origins[kept].all_named) s = {};
    ++kept;
  }
  p.calls.resize(kept);
  origins.resize(kept);
}

void number_slots(Recovery& r) {
  Program& p = r.program;
  std::vector<bool> read(p.slot_count(), false);
  for (const Call& c : p.calls) {
    for_each_read(c, [&](SlotId s) { read[s.at()] = true; });
    for (const Arg& a : c.args)
      if (const auto* d = std::get_if<DTypeOf>(&a)) read[d->slot.at()] = true;
  }
  for (const ProgramOutput& o : p.outputs)
    if (o.slot.valid()) read[o.slot.at()] = true;
  r.parameters.finish(read);
  for (ProgramInput& i : p.inputs) {
    const ShapedInput* shaped = r.graph.graph_input(r.graph.named(i.name));
    if (shaped && !read[i.slot.at()] && is_mask_input(*shaped)) i.passed = false;
  }

  std::vector<SlotId> number(p.slot_count());
  std::vector<std::string> names;
  names.reserve(p.slot_count());
  const auto give = [&](SlotId s) {
    if (!s.valid() || number[s.at()].valid()) return;
    number[s.at()] = SlotId(names.size());
    names.push_back(std::move(p.slot_names[s.at()]));
  };
  for (const Parameter& q : p.parameters) give(q.slot);
  for (const ProgramInput& i : p.inputs) give(i.slot);
  for (Call& c : p.calls) for_each_slot(c, [&](SlotId& s) { give(s); });
  for (const ProgramOutput& o : p.outputs) give(o.slot);

  const auto renumber = [&](SlotId& s) {
    if (s.valid()) s = number[s.at()];
  };
  for (Parameter& q : p.parameters) renumber(q.slot);
  for (ProgramInput& i : p.inputs) renumber(i.slot);
  for (ProgramOutput& o : p.outputs) renumber(o.slot);
  for (Call& c : p.calls) for_each_slot(c, renumber);
  p.slot_names = std::move(names);
}

}  // namespace headroom::recovery
