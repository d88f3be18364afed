#include "estimator/shadow/effect.h"

#include <algorithm>
#include <boost/container/small_vector.hpp>

#include "estimator/shadow/autograd.h"

namespace headroom::shadow {

/// Reads the tensors that a call returned, and counts who holds them.
class Effect::Reader {
 public:
  Reader(Effect& effect, const Signature& s, std::int32_t first_block)
      : effect_(effect), given_(s.tensors()), first_block_(first_block) {}

  std::optional<Returned> value(const Value& v) {
    Returned r;
    if (v.is_tensor()) {
      const auto place = tensor(v.tensor().get());
      if (!place) return std::nullopt;
      r.tensor = *place;
    } else if (v.is_list()) {
      r.is_list = true;
      for (const Value& one : v.list()) {
        auto element = value(one);
        if (!element) return std::nullopt;
        r.list.push_back(*std::move(element));
      }
    } else {
      r.plain = v;
    }
    return r;
  }

  /// Whether nobody but what was returned holds what was made.
  bool owned() const {
    const auto alone = [](const auto& counted) { return counted.object->owners == counted.owners; };
    return std::all_of(tensors_.begin(), tensors_.end(), alone) &&
           std::all_of(storages_.begin(), storages_.end(), alone);
  }

 private:
  template <class T>
  struct Counted {
    const T* object;
    std::uint32_t owners;
  };

  /// One more owner of `t`.
  std::optional<Place> tensor(const TensorImpl* t) {
    if (const auto at = std::find(given_.begin(), given_.end(), t); at != given_.end())
      return Place{Place::Kind::given, static_cast<std::size_t>(at - given_.begin())};
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      if (tensors_[i].object == t) {
        ++tensors_[i].owners;
        return Place{Place::Kind::made, i};
      }
    return made(*t);
  }

  std::optional<Place> made(const TensorImpl& t) {
    if (t.grad_fn || t.grad || t.accumulator || t.requires_grad || t.wrapped_number || t.parameter ||
        t.output_nr != 0 || t.label >= 0 || !t.storage)
      return std::nullopt;
    Place base;
    if (t.base) {
      const auto found = base_of(t);
      if (!found) return std::nullopt;
      base = *found;
    }
    Made m{.dtype = t.dtype,
           .host = t.host,
           .sizes = t.sizes,
           .strides = t.strides,
           .offset = t.offset,
           .own_storage = false,
           .base = base};
    if (!add_storage(*t.storage, m)) return std::nullopt;
    effect_.made_.push_back(std::move(m));
    tensors_.push_back({&t, 1});
    return Place{Place::Kind::made, tensors_.size() - 1};
  }

  std::optional<Place> base_of(const TensorImpl& t) {
    for (std::size_t i = 0; i < given_.size(); ++i)
      if (given_[i]->base == t.base) return Place{Place::Kind::base_of_given, i};
    return tensor(t.base.get());
  }

  /// Whose storage a made tensor has. Not known when two of the given tensors share it.
  bool add_storage(const Storage& s, Made& m) {
    const TensorImpl* owner = nullptr;
    for (std::size_t i = 0; i < given_.size(); ++i) {
      if (given_[i]->storage.get() != &s || given_[i] == owner) continue;
      if (owner) return false;
      owner = given_[i];
      m.storage = i;
    }
    if (owner) return true;
    m.own_storage = true;
    const auto known =
        std::find_if(storages_.begin(), storages_.end(), [&](const auto& counted) { return counted.object == &s; });
    m.storage = static_cast<std::size_t>(known - storages_.begin());
    if (known != storages_.end()) {
      ++known->owners;
      return true;
    }
    if (s.saved != 0 || (s.block >= 0 && s.block < first_block_)) return false;
    storages_.push_back({&s, 1});
    effect_.storages_.push_back({s.block < 0 ? -1 : s.block - first_block_, s.bytes});
    return true;
  }

  Effect& effect_;
  std::span<TensorImpl* const> given_;
  std::int32_t first_block_;
  std::vector<Counted<TensorImpl>> tensors_;  ///< as made_
  std::vector<Counted<Storage>> storages_;    ///< as storages_
};

std::optional<Effect> Effect::of(const Signature& s, const Recorder& recorder, Recorder::Mark since,
                                 const Outputs& outputs) {
  if (!s.still_true()) return std::nullopt;
  Effect effect;
  if (!recorder.read(since, effect.blocks_, effect.events_)) return std::nullopt;
  Reader reader(effect, s, static_cast<std::int32_t>(since.blocks));
  for (const Value& v : outputs) {
    auto r = reader.value(v);
    if (!r) return std::nullopt;
    effect.returned_.push_back(*std::move(r));
  }
  if (!reader.owned()) return std::nullopt;
  // What lives on is what was returned.
  const auto freed = std::count_if(effect.events_.begin(), effect.events_.end(),
                                   [](const Recorder::Event& e) { return e.kind == TraceEvent::Kind::free; });
  const auto returned = std::count_if(effect.storages_.begin(), effect.storages_.end(),
                                      [](const MadeStorage& m) { return m.block >= 0; });
  if (static_cast<std::size_t>(freed + returned) != effect.blocks_.size()) return std::nullopt;
  return effect;
}

Outputs Effect::repeat(const Signature& s, Recorder& recorder) const {
  const std::int32_t first_block = recorder.repeat(blocks_, events_);
  boost::container::small_vector<Ref<Storage>, 4> storages;
  for (const MadeStorage& m : storages_)
    storages.push_back(recorder.storage(m.block < 0 ? -1 : first_block + m.block, m.bytes));
  boost::container::small_vector<Tensor, 4> made;
  for (const Made& m : made_) {
    Tensor t(new TensorImpl);
    t->dtype = m.dtype;
    t->host = m.host;
    t->sizes = m.sizes;
    t->strides = m.strides;
    t->offset = m.offset;
    t->storage = m.own_storage ? storages[m.storage] : s.tensors()[m.storage]->storage;
    switch (m.base.kind) {
      case Place::Kind::none:
        break;
      case Place::Kind::given:
        t->base = Tensor(s.tensors()[m.base.index]);
        break;
      case Place::Kind::base_of_given:
        t->base = s.tensors()[m.base.index]->base;
        break;
      case Place::Kind::made:
        t->base = made[m.base.index];
        break;
    }
    made.push_back(std::move(t));
  }
  Outputs outputs;
  for (const Returned& r : returned_) outputs.push_back(value_of(r, s, {made.data(), made.size()}));
  return outputs;
}

Value Effect::value_of(const Returned& r, const Signature& s, std::span<const Tensor> made) const {
  if (r.tensor.kind == Place::Kind::made) return Value(made[r.tensor.index]);
  if (r.tensor.kind == Place::Kind::given) return Value(Tensor(s.tensors()[r.tensor.index]));
  if (!r.is_list) return r.plain;
  ValueList list;
  list.reserve(r.list.size());
  for (const Returned& one : r.list) list.push_back(value_of(one, s, made));
  return Value(std::move(list));
}

}  // namespace headroom::shadow
