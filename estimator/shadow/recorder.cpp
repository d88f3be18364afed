#include "estimator/shadow/recorder.h"

#include <algorithm>
#include <utility>

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
  if (bytes.count() == 0) return storage(-1, bytes);
  const auto block = static_cast<std::int32_t>(trace_.blocks.size());
  ++live_blocks_;
  trace_.blocks.push_back({.bytes = bytes,
                           .category = category,
                           .phase = phase_,
                           .step = step_,
                           .module = module,
                           .site = site,
                           .op = op,
                           .name = -1});
  trace_.events.push_back({.kind = TraceEvent::Kind::alloc, .category = category, .phase = phase_, .index = block});
  return storage(block, bytes);
}

Ref<Storage> Recorder::host() { return Ref<Storage>(new Storage); }

void Recorder::free(const Storage& s) {
  --live_blocks_;
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
  if (--s.saved != 0 || s.block < 0 || s.owners == 1 || stopped_) return;
  const auto block = static_cast<std::size_t>(s.block);
  if (temporary(trace_.blocks[block].category)) becomes(s, temporaries());
}

void Recorder::name(const Storage& s, std::int32_t text) {
  if (s.block >= 0) trace_.blocks[static_cast<std::size_t>(s.block)].name = text;
}

void Recorder::begin(Phase phase, int step) {
  if (on_phase) on_phase(trace_);
  phase_ = phase;
  step_ = step;
  trace_.events.push_back({.kind = TraceEvent::Kind::phase, .category = {}, .phase = phase, .index = step});
}

void Recorder::uses_cudnn() {
  if (std::exchange(cudnn_, true)) return;
  trace_.events.push_back({.kind = TraceEvent::Kind::cudnn, .phase = phase_});
}

std::int32_t Recorder::text(std::string_view t) {
  std::int32_t& recent = recent_texts_[reinterpret_cast<std::uintptr_t>(t.data()) / 8 % recent_texts_.size()];
  const auto at = static_cast<std::size_t>(recent);
  if (at < trace_.texts.size() && trace_.texts[at] == t) return recent;
  return recent = known_text(t);
}

std::int32_t Recorder::known_text(std::string_view t) {
  if (const auto found = texts_.find(t); found != texts_.end()) return found->second;
  const auto id = static_cast<std::int32_t>(trace_.texts.size());
  texts_.emplace(t, id);
  trace_.texts.emplace_back(t);
  return id;
}

bool Recorder::read(Mark since, std::vector<Block>& blocks, std::vector<Event>& events) const {
  for (std::size_t i = since.blocks; i < trace_.blocks.size(); ++i) {
    const TraceBlock& b = trace_.blocks[i];
    if (b.name >= 0) return false;
    blocks.push_back(
        {.bytes = b.bytes, .category = b.category == purpose ? std::nullopt : std::optional(b.category), .op = b.op});
  }
  for (std::size_t i = since.events; i < trace_.events.size(); ++i) {
    const TraceEvent& e = trace_.events[i];
    const std::int32_t block = e.index - static_cast<std::int32_t>(since.blocks);
    if ((e.kind != TraceEvent::Kind::alloc && e.kind != TraceEvent::Kind::free) || block < 0) return false;
    events.push_back({e.kind, block});
  }
  return true;
}

std::int32_t Recorder::repeat(std::span<const Block> blocks, std::span<const Event> events) {
  const auto first = static_cast<std::int32_t>(trace_.blocks.size());
  for (const Block& b : blocks)
    trace_.blocks.push_back({.bytes = b.bytes,
                             .category = b.category.value_or(purpose),
                             .phase = phase_,
                             .step = step_,
                             .module = module,
                             .site = site,
                             .op = b.op,
                             .name = -1});
  for (const Event& e : events) {
    const bool alloc = e.kind == TraceEvent::Kind::alloc;
    live_blocks_ += alloc ? 1U : ~std::size_t{0};
    trace_.events.push_back(
        {.kind = e.kind,
         .category = alloc ? blocks[static_cast<std::size_t>(e.block)].category.value_or(purpose) : Category{},
         .phase = phase_,
         .index = first + e.block});
  }
  return first;
}

bool Recorder::frees_own_blocks(Mark begin, Mark end) const {
  return std::all_of(trace_.events.begin() + static_cast<std::ptrdiff_t>(begin.events),
                     trace_.events.begin() + static_cast<std::ptrdiff_t>(end.events), [&](const TraceEvent& e) {
                       return e.kind != TraceEvent::Kind::free || e.index >= static_cast<std::int32_t>(begin.blocks);
                     });
}

std::vector<std::int32_t> Recorder::repeat_blocks(Mark begin, Mark end, int step,
                                                  std::span<const std::int32_t> left_out) {
  std::vector<std::int32_t> places(end.blocks - begin.blocks, -1);
  trace_.blocks.reserve(trace_.blocks.size() + places.size());
  for (std::size_t i = begin.blocks; i < end.blocks; ++i) {
    if (std::ranges::find(left_out, static_cast<std::int32_t>(i)) != left_out.end()) continue;
    places[i - begin.blocks] = static_cast<std::int32_t>(trace_.blocks.size());
    trace_.blocks.push_back(trace_.blocks[i]);
    trace_.blocks.back().step = step;
  }
  return places;
}

Ref<Storage> Recorder::storage(std::int32_t block, Bytes bytes) {
  Ref<Storage> s(new Storage);
  s->bytes = bytes;
  if (block < 0) return s;
  s->recorder = this;
  s->block = block;
  return s;
}

}  // namespace headroom::shadow
