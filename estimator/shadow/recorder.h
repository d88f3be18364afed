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

  void freed(const Storage& s) {
    if (!stopped_) free(s);
  }
  /// The block is from now on counted as `category`.
  void becomes(const Storage& s, Category category);
  /// One more (or one less) autograd node saves the storage: temporaries turn into activations and back.
  void saved(Storage& s);
  void unsaved(Storage& s);
  void name(const Storage& s, std::int32_t text);
  void begin(Phase phase, int step);
  /// A convolution of cuDNN runs.
  void uses_cudnn();

  /// Place of `t` in the trace's texts.
  std::int32_t text(std::string_view t);
  /// The trace was taken: what goes from here on is no event.
  void stop() { stopped_ = true; }
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
  /// Whether every block freed between the marks was made between them.
  bool frees_own_blocks(Mark begin, Mark end) const;
  /// Makes the blocks from `begin` to `end` once more, as of step `step`, without those of `left_out`: the new block of
  /// each; -1 for none.
  std::vector<std::int32_t> repeat_blocks(Mark begin, Mark end, int step, std::span<const std::int32_t> left_out = {});
  /// Appends the events [begin, end) once more, as of step `step`; `place` says which block takes the place of one, -1
  /// that the event does not come again.
  template <class F>
  void repeat_events(std::size_t begin, std::size_t end, int step, F&& place);
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
  void free(const Storage& s);
  std::int32_t known_text(std::string_view t);

  Trace& trace_;
  Phase phase_ = Phase::setup;
  int step_ = 0;
  std::size_t live_blocks_ = 0;
  bool cudnn_ = false;  ///< is loaded
  bool stopped_ = false;
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };
  std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>> texts_;
  std::array<std::int32_t, 4096> recent_texts_{};  ///< by where the caller's text lies
};

template <class F>
void Recorder::repeat_events(std::size_t begin, std::size_t end, int step, F&& place) {
  trace_.events.reserve(trace_.events.size() + end - begin);
  for (std::size_t i = begin; i < end; ++i) {
    TraceEvent e = trace_.events[i];
    if (e.kind == TraceEvent::Kind::cudnn) continue;  // is loaded
    if (e.kind == TraceEvent::Kind::phase) {
      e.index = step_ = step;
      phase_ = e.phase;
    } else if ((e.index = place(e.index)) < 0) {
      continue;
    } else if (e.kind != TraceEvent::Kind::becomes) {
      live_blocks_ += e.kind == TraceEvent::Kind::alloc ? 1U : ~std::size_t{0};
    }
    trace_.events.push_back(e);
  }
}

}  // namespace headroom::shadow
