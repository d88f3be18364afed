#include "estimator/shadow/first_pass.h"

#include <algorithm>

#include "estimator/shadow/autograd.h"

namespace headroom::shadow {

FirstPass::FirstPass(Recorder& recorder, std::vector<Value>& variables)
    : recorder_(recorder), variables_(variables), begin_(recorder.mark()), live_(recorder.live_blocks()) {
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const Value& v = variables[i];
    if (v.is_tensor()) before_.push_back({i, v.tensor().get(), v.tensor()->storage.get()});
    if (v.is_list()) began_plain_ = false;  // no variable of a loop is one
  }
  began_plain_ = began_plain_ && as_before();
}

bool FirstPass::as_before() const {
  return std::ranges::all_of(before_, [&](const Variable& v) {
    const TensorImpl* t = variables_[v.at].tensor().get();
    return t == v.tensor && t->storage.get() == v.storage && !t->grad && !t->grad_fn;
  });
}

bool FirstPass::end(std::span<const Ref<Storage>* const> workspaces) {
  end_ = recorder_.mark();
  if (!began_plain_) return false;
  for (const Ref<Storage>* w : workspaces)
    if (*w && own((*w)->block)) workspaces_.push_back((*w)->block);
  for (const Variable& v : before_) {
    const Tensor& t = variables_[v.at].tensor();
    if (t.get() != v.tensor || (t->grad && !adds(v.at, true, t->grad))) return false;
  }
  for (const Binding& b : bound_) {
    const Tensor& t = variables_[b.variable].tensor();
    if (t && own(t->storage->block) && !adds(b.variable, false, t)) return false;
  }
  std::vector<char> left(end_.blocks - begin_.blocks);
  const auto leaves = [&](std::int32_t block) { left[static_cast<std::size_t>(block) - begin_.blocks] = 1; };
  for (const std::int32_t w : workspaces_) leaves(w);
  for (const Result& r : results_) leaves(r.block);
  const auto count = static_cast<std::size_t>(std::ranges::count(left, 1));
  return count + live_ == recorder_.live_blocks() && recorder_.frees_own_blocks(begin_, end_);
}

/// False where more than the tensor and its storage was left behind.
bool FirstPass::adds(std::size_t variable, bool gradient, const Tensor& t) {
  const auto alone = [](const TensorImpl& one) { return one.owners == 1 && !one.grad; };
  const TensorImpl* base = t->base.get();
  if (!alone(*t) || t->storage->saved != 0 || !own(t->storage->block) || (gradient && t->grad_fn)) return false;
  if (base && (!alone(*base) || base->base || !(base->storage == t->storage))) return false;
  const auto copied = [](const TensorImpl& one) {
    Tensor copy(new TensorImpl(one));
    copy->owners = 1;
    copy->storage.reset();
    return copy;
  };
  results_.push_back({variable, gradient, t->storage->block, t->storage->bytes, copied(*t)});
  if (base) results_.back().tensor->base = copied(*base);
  return true;
}

bool FirstPass::repeat(int step) {
  if (!as_before()) return false;
  const std::vector<std::int32_t> places = recorder_.repeat_blocks(begin_, end_, step, workspaces_);
  const auto place = [&](std::int32_t block) {
    return own(block) ? places[static_cast<std::size_t>(block) - begin_.blocks] : block;
  };
  std::size_t event = begin_.events;
  for (const Binding& b : bound_) {
    recorder_.repeat_events(event, b.event, step, place);
    event = b.event;
    variables_[b.variable] = Value{};
  }
  recorder_.repeat_events(event, end_.events, step, place);
  std::vector<Ref<Storage>> storages(places.size());
  for (Result& r : results_) {
    Ref<Storage>& storage = storages[static_cast<std::size_t>(r.block) - begin_.blocks];
    if (!storage) storage = recorder_.storage(place(r.block), r.bytes);
    r.tensor->storage = storage;
    if (r.tensor->base) r.tensor->base->storage = storage;
    if (r.gradient)
      variables_[r.variable].tensor()->grad = std::move(r.tensor);
    else
      variables_[r.variable] = Value(std::move(r.tensor));
  }
  return true;
}

}  // namespace headroom::shadow
