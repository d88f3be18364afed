// Signature: all that decides what a call does to memory, as words that can be compared.
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "estimator/shadow/tensor.h"
#include "estimator/shadow/value.h"

namespace headroom::shadow {

/// Which code runs, and the geometry of what it is given. Two calls with equal signatures make and free blocks of the
/// same sizes in the same order, and return tensors of the same geometry in the same relation to their arguments.
class Signature {
 public:
  /// `code` is an object that stands for what runs; `mode` what is set around it.
  Signature(const void* code, std::uint64_t mode) : words_{reinterpret_cast<std::uintptr_t>(code), mode} {}

  void add(const Value& v);
  void add(const Tensor& t);
  /// False when the call is given more tensors than are worth comparing.
  bool complete() const { return complete_; }
  /// False when a tensor's geometry is no longer what was added.
  bool still_true() const;

  std::span<const std::uint64_t> words() const { return {words_.data(), words_.size()}; }
  /// What was added, in that order; a tensor that was given twice is there twice.
  std::span<TensorImpl* const> tensors() const { return {tensors_.data(), tensors_.size()}; }
  std::size_t hash() const;

 private:
  using Words = boost::container::small_vector<std::uint64_t, 64>;
  static void add_geometry(Words& words, const TensorImpl& t);

  Words words_;
  boost::container::small_vector<TensorImpl*, 8> tensors_;
  boost::container::small_vector<std::uint32_t, 8> places_;  ///< of the tensors' geometry in words_; 0: given before
  bool complete_ = true;
};

/// A T for every signature.
template <class T>
class BySignature {
 public:
  /// Made by T's default constructor when it is first asked for. Does not move.
  T& operator[](const Signature& s) {
    const Asked asked{s.words(), s.hash()};
    if (const auto found = known_.find(asked); found != known_.end()) return *found->second;
    return *known_.emplace(Key{{s.words().begin(), s.words().end()}, asked.hash}, std::make_unique<T>()).first->second;
  }

 private:
  struct Key {
    std::vector<std::uint64_t> words;
    std::size_t hash;
  };
  struct Asked {
    std::span<const std::uint64_t> words;
    std::size_t hash;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const Key& k) const { return k.hash; }
    std::size_t operator()(const Asked& a) const { return a.hash; }
  };
  struct Equal {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return a.hash == b.hash && std::equal(a.words.begin(), a.words.end(), b.words.begin(), b.words.end());
    }
  };
  std::unordered_map<Key, std::unique_ptr<T>, Hash, Equal> known_;
};

}  // namespace headroom::shadow
