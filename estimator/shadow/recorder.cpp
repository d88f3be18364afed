#include "estimator/shadow/recorder.h"

namespace headroom::shadow {

Category Recorder::temporaries() const {
  switch (phase_) {
    case Phase::backward:
      return Category::backward_temporaries;
    case Phase::optimizer:
    case Phase::zero_grad:
      return Category::optimizer_temporaries;
    case Phase::setup:
    case Phase::forward:
      break;
  }
  return Category::forward_temporaries;
}

Ref<Storage> Recorder::make(Bytes bytes, Category category) {
  Ref<Storage> s(new Storage);
  s->bytes = bytes;
  if (bytes.count() == 0) return s;
  s->recorder = this;
  s->block = static_cast<std::int32_t>(trace_.blocks.size());
  trace_.blocks.push_back({.bytes = bytes,
                           .category = category,
                           .phase = phase_,
                           .step = step_,
                           .module = module,
                           .site = site,
                           .op = op,
                           .name = -1});
  trace_.events.push_back({.kind = TraceEvent::Kind::alloc, .category = category, .phase = phase_, .index = s->block});
  return s;
}

Ref<Storage> Recorder::host() { return Ref<Storage>(new Storage); }

void Recorder::freed(const Storage& s) {
  trace_.events.push_back({.kind = TraceEvent::Kind::free, .category = {}, .phase = phase_, .index = s.block});
}

void Recorder::becomes(const Storage& s, Category category) {
  if (s.block < 0) return;
  trace_.events.push_back({.kind = TraceEvent::Kind::becomes, .category = category, .phase = phase_, .index = s.block});
}

namespace {

bool temporary(Category c) {
  return c == Category::forward_temporaries || c == Category::backward_temporaries ||
         c == Category::optimizer_temporaries;
}

}  // namespace

void Recorder::saved(Storage& s) {
  if (++s.saved != 1 || s.block < 0) return;
  if (temporary(trace_.blocks[static_cast<std::size_t>(s.block)].category)) becomes(s, Category::activations);
}

void Recorder::unsaved(Storage& s) {
  if (--s.saved != 0 || s.block < 0 || s.owners == 1) return;
  if (temporary(trace_.blocks[static_cast<std::size_t>(s.block)].category)) becomes(s, temporaries());
}

void Recorder::name(const Storage& s, std::string_view t) {
  if (s.block >= 0) trace_.blocks[static_cast<std::size_t>(s.block)].name = text(t);
}

void Recorder::begin(Phase phase, int step) {
  phase_ = phase;
  step_ = step;
  trace_.events.push_back({.kind = TraceEvent::Kind::phase, .category = {}, .phase = phase, .index = step});
}

std::int32_t Recorder::text(std::string_view t) {
  if (const auto found = texts_.find(t); found != texts_.end()) return found->second;
  const auto id = static_cast<std::int32_t>(trace_.texts.size());
  texts_.emplace(t, id);
  trace_.texts.emplace_back(t);
  return id;
}

}  // namespace headroom::shadow
