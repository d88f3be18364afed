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
  blocks_.push_back(s->block);
}

void Portrait::add(const Tensor& t) {
  if (!t) return add(std::uint64_t{0});
  if (!first(*t)) return;
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
