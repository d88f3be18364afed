#include "estimator/plan/checkpoint/step_watch.h"

#include <algorithm>

namespace headroom {

StepWatch::StepWatch(shadow::Shadow& machine, const Scenario& scenario, const Program& program, int step,
                     shadow::StepLog& log)
    : m_(machine), scenario_(scenario), program_(program), step_(step), log_(log) {}

void StepWatch::phase(Phase phase, int step) {
  m_.phase(phase, step);
  watching_ = step == step_ && (phase == Phase::forward || phase == Phase::backward);
  m_.recorder().log = watching_ ? &log_ : nullptr;
  if (!watching_ || phase != Phase::forward) return;
  begins.clear();
  reads.clear();
  writes.clear();
  makes.clear();
  costs.clear();
  of_loss = {};
  log_ = {};
}

void StepWatch::note_tensor(SlotId slot, std::vector<CostTensor>& shapes, std::vector<std::int32_t>& blocks) const {
  const shadow::Value& v = m_.value(slot);
  const auto one = [&](const shadow::Value& t) {
    if (!t.is_tensor()) return;
    const shadow::TensorImpl& i = *t.tensor();
    shapes.push_back({i.sizes, i.dtype, i.needs_grad(), shadow::is_contiguous(i)});
    if (i.storage->block >= 0) blocks.push_back(i.storage->block);
  };
  if (v.is_list())
    for (const shadow::Value& t : v.list()) one(t);
  else
    one(v);
}

void StepWatch::note_tensors(const Arg& a, std::vector<CostTensor>& shapes, std::vector<std::int32_t>& blocks) const {
  if (const auto* s = std::get_if<SlotId>(&a)) {
    if (s->valid()) note_tensor(*s, shapes, blocks);
  } else if (const auto* l = std::get_if<Slots>(&a)) {
    for (const SlotId one : *l)
      if (one.valid()) note_tensor(one, shapes, blocks);
  }
}

void StepWatch::call(std::string_view op, std::span<const Arg> args, std::span<const SlotId> outputs,
                     const Site& site) {
  if (!watching_) return m_.call(op, args, outputs, site);
  const bool after = begins.size() >= program_.calls.size();  // the loss
  if (begins.size() <= program_.calls.size()) begins.push_back({m_.recorder().mark(), m_.last_sequence()});
  std::vector<CostTensor> inputs, results;
  std::vector<std::int32_t> read, written, made;
  std::string_view equation;
  const auto& arguments = m_.entry(op).schema->arguments;
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::size_t before = read.size();
    note_tensors(args[i], inputs, read);
    if (i < arguments.size() && arguments[i].written)
      written.insert(written.end(), read.begin() + static_cast<std::ptrdiff_t>(before), read.end());
    if (const auto* text = std::get_if<Text>(&args[i]); text && equation.empty()) equation = text->text;
  }
  m_.call(op, args, outputs, site);
  for (const SlotId s : outputs)
    if (s.valid()) note_tensor(s, results, made);
  // A view moves nothing: its block is one that was given.
  const bool moves = !written.empty() || made.empty() || std::none_of(made.begin(), made.end(), [&](std::int32_t b) {
    return std::find(read.begin(), read.end(), b) != read.end();
  });
  const bool attention = op.starts_with("aten::scaled_dot_product_attention");
  const CallCost cost = cost_of(
      {.op = op,
       .inputs = inputs,
       .outputs = results,
       .equation = equation,
       .view = !moves,
       .causal = attention && args.size() > 5 && std::get_if<bool>(&args[5]) && std::get<bool>(args[5]),
       .dropout = attention && args.size() > 4 && std::get_if<double>(&args[4]) && std::get<double>(args[4]) > 0},
      {scenario_.autocast_dtype(), scenario_.precision == Precision::tf32});
  if (after) {
    of_loss += cost;
    return;
  }
  costs.push_back(cost);
  reads.push_back(std::move(read));
  writes.push_back(std::move(written));
  makes.push_back(std::move(made));
}

void StepWatch::backward(SlotId loss) {
  backward_begin = {m_.recorder().mark(), m_.last_sequence()};
  m_.backward(loss);
  backward_end = m_.recorder().mark().events;
}

}  // namespace headroom
