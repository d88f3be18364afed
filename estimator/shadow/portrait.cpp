#include "estimator/shadow/portrait.h"

namespace headroom::shadow {

template <class T>
bool Portrait::first(T& object) {
  const bool met = object.number > before_;
  if (!met) object.number = ++*numbers_;
  add(object.number - before_);
  return !met;
}

void Portrait::add(const Value& v) {
  add(static_cast<std::uint64_t>(v.kind()));
  if (v.is_tensor()) {
    add(v.tensor());
  } else if (v.is_list()) {
    add(v.list().size());
    for (const Value& one : v.list()) add(one);
  } else if (!v.none()) {
    spoil();  // no variable of a program holds such a thing
  }
}

void Portrait::add(const Ref<Storage>& s) {
  if (!s) return add(std::uint64_t{0});
  if (!first(*s)) return;
  add(static_cast<std::uint64_t>(s->bytes.count()));
  add(static_cast<std::uint64_t>(s->saved));
  if (s->block < 0) return;
  add(static_cast<std::uint64_t>(recorder_->category(s->block)));
  if (!s->lasting) blocks_.push_back(s->block);
}

bool Portrait::lasts(const TensorImpl& t) const {
  if (t.storage->owners > 1) return false;
  if (t.host) return t.label >= 0;
  if (t.storage->block < 0) return false;
  const Category c = recorder_->category(t.storage->block);
  return c == Category::weights || c == Category::buffers || c == Category::optimizer_state;
}

bool Portrait::add_lasting(const Value& v) {
  if (!v.is_tensor()) return false;
  TensorImpl& t = *v.tensor();
  if (t.grad || t.grad_fn || t.base) return false;
  if (!t.lasting) {
    if (!lasts(t)) return false;
    t.lasting = t.storage->lasting = true;
  }
  if (first(t) && !t.host) ++lasting_;
  add(reinterpret_cast<std::uintptr_t>(&t) | (t.accumulator != nullptr ? 1U : 0U));
  return true;
}

void Portrait::add(const Tensor& t) {
  if (!t) return add(std::uint64_t{0});
  if (!first(*t)) return;
  if (t->lasting && !t->host) ++lasting_;
  std::uint64_t flags = 0;
  for (const bool flag : {t->requires_grad, t->host, t->wrapped_number, t->parameter, t->accumulator != nullptr})
    flags = flags << 1 | (flag ? 1U : 0U);
  const std::size_t at = words_.size(), rank = t->dim();
  words_.resize(at + 4 + 2 * rank);
  std::uint64_t* to = words_.data() + at;
  *to++ = flags << 32 | static_cast<std::uint64_t>(t->dtype) << 16 | t->output_nr;
  *to++ = static_cast<std::uint64_t>(t->label);
  *to++ = static_cast<std::uint64_t>(t->offset);
  *to++ = rank;
  for (std::size_t i = 0; i < rank; ++i) to[i] = static_cast<std::uint64_t>(t->sizes[i]);
  for (std::size_t i = 0; i < rank; ++i) to[rank + i] = static_cast<std::uint64_t>(t->strides[i]);
  add(t->storage);
  add(t->base);
  add(t->grad);
  add(t->grad_fn);
}

void Portrait::add(const Ref<Node>& n) {
  if (!n) return add(std::uint64_t{0});
  if (first(*n)) nodes_.push_back(n.get());
}

void Portrait::finish() {
  for (; followed_ < nodes_.size(); ++followed_) {
    const Node& n = *nodes_[followed_];
    for (const Edge& e : n.next) {
      add(e.node);
      add(e.input_nr);
    }
    if (!n.portray(*this)) spoil();
    if (!complete_) break;
  }
}

}  // namespace headroom::shadow
