// Recent: the newest few results of a costly question, shared between threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

namespace headroom {

/// Each result is made once; who asks for it meanwhile waits. An exception is the answer to all who ask. `Key` has ==.
template <class Key, class Value>
class Recent {
 public:
  using Pointer = std::shared_ptr<const Value>;

  explicit Recent(std::size_t kept) : kept_(std::max<std::size_t>(kept, 1)) {}

  /// `make()` -> Value, called when `key` is not among the results kept.
  template <class Make>
  Pointer get(const Key& key, Make&& make) {
    std::promise<Pointer> promise;
    std::shared_future<Pointer> known = find_or_add(key, promise);
    if (known.valid()) return known.get();
    try {
      Pointer made = std::make_shared<const Value>(make());
      promise.set_value(made);
      return made;
    } catch (...) {
      promise.set_exception(std::current_exception());
      throw;
    }
  }

 private:
  /// The future of `key`; when it is new, that of `promise` is kept and an invalid one returned.
  std::shared_future<Pointer> find_or_add(const Key& key, std::promise<Pointer>& promise) {
    const std::lock_guard lock(mutex_);
    for (auto it = results_.begin(); it != results_.end(); ++it)
      if (it->first == key) {
        results_.splice(results_.begin(), results_, it);
        return it->second;
      }
    results_.emplace_front(key, promise.get_future().share());
    if (results_.size() > kept_) results_.pop_back();
    return {};
  }

  std::size_t kept_;
  std::mutex mutex_;
  std::list<std::pair<Key, std::shared_future<Pointer>>> results_;  ///< newest first
};

}  // namespace headroom
