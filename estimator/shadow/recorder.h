// Recorder: where storages report their birth and death, and who is responsible for them at the moment.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "estimator/shadow/step_log.h"
#include "estimator/shadow/tensor.h"
#include "estimator/shadow/trace.h"

namespace headroom::shadow {

class Recorder {
 public:
  explicit Recorder(Trace& trace) : trace_(trace) {}

  /// A storage of `bytes`; no event when it is empty.
  Ref<Storage> make(Bytes bytes, Category category);
  Ref<Storage> make(Bytes bytes) { return make(bytes, purpose); }
  static Ref<Storage> host();

  void freed(const Storage& s);
  /// The block is from now on counted as `category`.
  void becomes(const Storage& s, Category category);
  /// One more (or one less) autograd node saves the storage: temporaries turn into activations and back.
  void saved(Storage& s);
  void unsaved(Storage& s);
  void name(const Storage& s, std::int32_t text);
  void begin(Phase phase, int step);
  /// A convolution of cuDNN runs.
  void uses_cudnn();

  std::int32_t text(std::string_view t);
  /// Blocks that were made and not freed.
  std::size_t live_blocks() const { return live_blocks_; }
  /// Of a block, at birth.
  Category category(std::int32_t block) const { return trace_.blocks[static_cast<std::size_t>(block)].category; }

  // ---- stretches of the trace that are repeated
  // ----------------------------------------------------------------------

  struct Mark {
    std::size_t blocks, events;
  };
  /// What a block of a repeated stretch does not take from the recorder.
  struct Block {
    Bytes bytes;
    std::optional<Category> category;  ///< absent: the purpose
    std::int32_t op;
  };
  struct Event {
    TraceEvent::Kind kind;
    std::int32_t block;  ///< counted from the stretch's first
  };
  Mark mark() const { return {trace_.blocks.size(), trace_.events.size()}; }
  /// The stretch from `since` on; false when it is about other blocks too.
  bool read(Mark since, std::vector<Block>& blocks, std::vector<Event>& events) const;
  /// Appends a stretch; returns its first block.
  std::int32_t repeat(std::span<const Block> blocks, std::span<const Event> events);
  /// Appends the stretch from `begin` to `end` once more, as of step `step`. Of its own blocks there are new ones, the
  /// first of which is returned; `older` says which block takes the place of one that was there before.
  template <class F>
  std::int32_t repeat(Mark begin, Mark end, int step, F&& older);
  /// The storage of a block that lives; -1: of none.
  Ref<Storage> storage(std::int32_t block, Bytes bytes);

  /// What a block allocated now is when nothing else is said: the temporaries of the phase.
  Category temporaries() const;

  Category purpose = Category::inputs;
  ModuleId module;
  std::int32_t site = -1;
  std::int32_t op = -1;
  StepLog* log = nullptr;  ///< where saves and nodes are noted, if anywhere
  /// Called when a phase begins: the events recorded up to then, and the sizes of their blocks, stay as they are.
  std::function<void(const Trace&)> on_phase;

 private:
  std::int32_t known_text(std::string_view t);

  Trace& trace_;
  Phase phase_ = Phase::setup;
  int step_ = 0;
  std::size_t live_blocks_ = 0;
  bool cudnn_ = false;  ///< is loaded
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };
  std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>> texts_;
  std::array<std::int32_t, 4096> recent_texts_{};  ///< by where the caller's text lies
};

template <class F>
std::int32_t Recorder::repeat(Mark begin, Mark end, int step, F&& older) {
  const auto first_old = static_cast<std::int32_t>(begin.blocks),
             first = static_cast<std::int32_t>(trace_.blocks.size());
  trace_.blocks.reserve(trace_.blocks.size() + end.blocks - begin.blocks);
  for (std::size_t i = begin.blocks; i < end.blocks; ++i) {
    trace_.blocks.push_back(trace_.blocks[i]);
    trace_.blocks.back().step = step;
  }
  trace_.events.reserve(trace_.events.size() + end.events - begin.events);
  for (std::size_t i = begin.events; i < end.events; ++i) {
    TraceEvent e = trace_.events[i];
    if (e.kind == TraceEvent::Kind::phase)
      e.index = step;
    else if (e.of_block())
      e.index = e.index >= first_old ? e.index - first_old + first : older(e.index);
    trace_.events.push_back(e);
  }
  return first;
}

}  // namespace headroom::shadow
