// Recorder: where storages report their birth and death, and who is responsible for them at the moment.
#pragma once

#include <string_view>
#include <unordered_map>

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
  void name(const Storage& s, std::string_view text);
  void begin(Phase phase, int step);

  std::int32_t text(std::string_view t);
  /// What a block allocated now is when nothing else is said: the temporaries of the phase.
  Category temporaries() const;

  Category purpose = Category::inputs;
  ModuleId module;
  std::int32_t site = -1;
  std::int32_t op = -1;

 private:
  Trace& trace_;
  Phase phase_ = Phase::setup;
  int step_ = 0;
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };
  std::unordered_map<std::string, std::int32_t, TextHash, std::equal_to<>> texts_;
};

}  // namespace headroom::shadow
