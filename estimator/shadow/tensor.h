// Tensors without numbers: storage, sizes, strides, dtype, autograd history. What decides bytes in eager PyTorch is
// here by the mechanism PyTorch has: intrusive reference counts on tensors and on storages.
#pragma once

#include <cstdint>
#include <utility>

#include "estimator/base/bytes.h"
#include "estimator/base/dims.h"
#include "estimator/base/dtype.h"

namespace headroom::shadow {

/// Intrusive reference-counted pointer (c10::intrusive_ptr). T has `std::uint32_t owners` and a static
/// `void destroy(T*)` run when the last owner goes.
template <class T>
class Ref {
 public:
  constexpr Ref() = default;
  constexpr Ref(std::nullptr_t) {}
  explicit Ref(T* p) : p_(p) {
    if (p_) ++p_->owners;
  }
  Ref(const Ref& o) : p_(o.p_) {
    if (p_) ++p_->owners;
  }
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() { reset(); }

  void reset() {
    if (T* p = std::exchange(p_, nullptr); p && --p->owners == 0) T::destroy(p);
  }
  T* get() const { return p_; }
  T* operator->() const { return p_; }
  T& operator*() const { return *p_; }
  explicit operator bool() const { return p_ != nullptr; }
  std::uint32_t use_count() const { return p_ ? p_->owners : 0; }
  friend bool operator==(const Ref& a, const Ref& b) { return a.p_ == b.p_; }

 private:
  T* p_ = nullptr;
};

class Recorder;
class Node;

/// A block of device memory: an alloc event when made, a free event when its last holder goes. Host storages and those
/// of zero bytes make no events.
struct Storage {
  std::uint32_t owners = 0;
  std::int32_t block = -1;   ///< index of the block in the trace; -1: no device memory
  std::int32_t saved = 0;    ///< how many autograd nodes hold it as a saved tensor
  bool lasting = false;      ///< Portrait: of a lasting tensor
  std::uint64_t number = 0;  ///< scratch of Portrait
  Bytes bytes;
  Recorder* recorder = nullptr;

  static void destroy(Storage* s);
};

struct TensorImpl;
using Tensor = Ref<TensorImpl>;  ///< an empty Ref is an undefined tensor (None)

/// What is asked of many tensors that stay as they are (parameters, optimizer state) comes first: one cache line.
struct TensorImpl {
  std::uint32_t owners = 0;
  std::uint16_t output_nr = 0;  ///< which output of grad_fn
  DType dtype = DType::f32;
  bool requires_grad : 1 = false;   ///< of a leaf; a non-leaf has a grad_fn instead
  bool host : 1 = false;            ///< on the CPU: no device bytes
  bool wrapped_number : 1 = false;  ///< a Python number: weak in type promotion
  bool parameter : 1 = false;       ///< an nn.Parameter (autocast caches casts of leaves that need grad)
  bool lasting : 1 = false;         ///< Portrait: stays from step to step
  std::uint64_t number = 0;         ///< scratch of Portrait
  Ref<Storage> storage;
  Tensor base;  ///< of a view: the tensor it was made from (VariableHooks keep it alive)
  Ref<Node> grad_fn;
  Tensor grad;                  ///< leaf only
  Node* accumulator = nullptr;  ///< AccumulateGrad node of a leaf, not owned; cleared when the node dies
  std::int32_t label = -1;      ///< of a parameter or input: Recorder text, for people
  std::int64_t offset = 0;      ///< elements
  Dims sizes;
  Dims strides;

  std::int64_t count() const { return element_count(sizes); }
  std::size_t dim() const { return sizes.size(); }
  bool needs_grad() const { return requires_grad || static_cast<bool>(grad_fn); }
  bool is_leaf() const { return !grad_fn; }
  static void destroy(TensorImpl* t);
};

inline bool needs_grad(const Tensor& t) { return t && t->needs_grad(); }

// ---- strides -------------------------------------------------------------------------------------------------------

Dims contiguous_strides(const Dims& sizes);
/// NHWC or NDHWC strides of a 4-D or 5-D tensor.
Dims channels_last_strides(const Dims& sizes);
bool is_contiguous(const TensorImpl& t);
bool is_channels_last(const TensorImpl& t);
/// is_channels_last and not also plainly contiguous in a way that makes PyTorch prefer NCHW
/// (c10::TensorImpl::is_strides_like_channels_last; suggest_memory_format).
bool suggests_channels_last(const TensorImpl& t);
/// c10 is_non_overlapping_and_dense.
bool is_non_overlapping_and_dense(const Dims& sizes, const Dims& strides);
inline bool is_dense(const TensorImpl& t) { return is_non_overlapping_and_dense(t.sizes, t.strides); }
/// Bytes of the storage that sizes and strides span; 0 when a size is 0.
Bytes storage_bytes(const Dims& sizes, const Dims& strides, DType dtype);
/// at::infer_dense_strides / empty_like of a tensor that is not dense: strides in the order of the given ones.
Dims dense_strides_like(const Dims& sizes, const Dims& strides);

}  // namespace headroom::shadow
