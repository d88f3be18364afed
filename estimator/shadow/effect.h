// Effect: what a call did to memory and what it returned. A network has few different calls and repeats them, layer by
// layer and step by step; the second time a call is not worked out again but repeated.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "estimator/shadow/recorder.h"
#include "estimator/shadow/signature.h"
#include "estimator/shadow/value.h"

namespace headroom::shadow {

class Effect {
 public:
  /// Of the call with the signature `s` that has just returned `outputs`; `since` was taken before it. Nothing when it
  /// did or returned what an effect cannot hold: what it made is held by others too (a workspace that stays), blocks of
  /// others were freed, a tensor's geometry was changed in place.
  static std::optional<Effect> of(const Signature& s, const Recorder& recorder, Recorder::Mark since,
                                  const Outputs& outputs);

  /// The same of another call with an equal signature.
  Outputs repeat(const Signature& s, Recorder& recorder) const;

 private:
  /// A tensor as seen from the call.
  struct Place {
    enum class Kind : std::uint8_t { none, given, base_of_given, made };
    Kind kind = Kind::none;
    std::size_t index = 0;  ///< into the signature's tensors, or into made_
  };
  struct Made {
    DType dtype;
    bool host;
    Dims sizes, strides;
    std::int64_t offset;
    bool own_storage;         ///< storage is one of storages_; else of a tensor that was given
    std::size_t storage = 0;  ///< into storages_, or into the signature's tensors
    Place base;
  };
  struct MadeStorage {
    std::int32_t block;  ///< counted from the call's first; -1: none
    Bytes bytes;
  };
  struct Returned {
    Value plain;  ///< neither tensor nor list
    Place tensor;
    bool is_list = false;
    std::vector<Returned> list;
  };
  class Reader;

  Value value_of(const Returned& r, const Signature& s, std::span<const Tensor> made) const;

  std::vector<Recorder::Block> blocks_;
  std::vector<Recorder::Event> events_;
  std::vector<MadeStorage> storages_;
  std::vector<Made> made_;  ///< a base comes before its views
  std::vector<Returned> returned_;
};

/// A call that is worked out until its effect is known.
class Repeatable {
 public:
  template <class F>
  Outputs run(const Signature& s, Recorder& recorder, F&& work) {
    if (effect_) return effect_->repeat(s, recorder);
    const Recorder::Mark since = recorder.mark();
    Outputs outputs = work();
    if (tries_ > 0) {
      --tries_;
      effect_ = Effect::of(s, recorder, since, outputs);
    }
    return outputs;
  }

 private:
  std::optional<Effect> effect_;
  int tries_ = 2;  ///< the first call may be another: it takes the thread's workspace
};

}  // namespace headroom::shadow
