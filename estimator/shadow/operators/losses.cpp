// Losses (aten/src/ATen/native/Loss.cpp, LossNLL.cpp, cuda/Loss.cu, cuda/NLLLoss2d.cu).
#include <algorithm>
#include <array>

#include "estimator/base/error.h"
#include "estimator/shadow/kernels/formats.h"
#include "estimator/shadow/kernels/iterator.h"
#include "estimator/shadow/kernels/reduce.h"
#include "estimator/shadow/kernels/views.h"
#include "estimator/shadow/operators/forward.h"

namespace headroom::shadow {
namespace {

/// at::Reduction.
enum Reduction : std::int64_t { none = 0, mean = 1, sum = 2 };

Tensor pair(Shadow& m, Args a) {
  const auto inputs = a.values().first(2);
  return elementwise(m, result_type(inputs), inputs);
}

/// The tensor becomes a scalar in the block that it has: what resize_output leaves behind.
Tensor resized_to_scalar(Tensor t) {
  t->sizes.clear();
  t->strides.clear();
  return t;
}

// ---- elementwise losses -------------------------------------------------------------------------------------------

/// mse_loss, smooth_l1_loss: the reduced loss sits in the block that was made for the elementwise one.
Outputs in_full_block(Shadow& m, Args a) {
  Tensor out = pair(m, a);
  if (a.integer(2) == none) return {out};
  const Tensor values = pair(m, a);
  reduce_scratch(m, values, {});
  return {resized_to_scalar(std::move(out))};
}

Outputs huber_loss(Shadow& m, Args a) {
  const Tensor values = pair(m, a);
  if (a.integer(2) == none) return {values};
  return {reduce(m, values, {}, false, values->dtype)};
}

/// binary_cross_entropy (self, target, weight, reduction), soft_margin_loss (self, target, reduction): a full block
/// that becomes the scalar, and a scalar for the reduction.
template <std::size_t reduction>
Outputs scalar_in_full_block(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  Tensor out = empty_in_format(m, x, DType::undefined, MemoryFormat::preserve);
  if (a.integer(reduction) == none) return {out};
  const Tensor total = reduce(m, out, {}, false, out->dtype);
  return {resized_to_scalar(std::move(out))};
}

Outputs binary_cross_entropy_backward(Shadow& m, Args a) {
  return {empty_in_format(m, a.tensor(1), DType::undefined, MemoryFormat::preserve)};
}

/// (self, target, weight, pos_weight, reduction): the log-sigmoid, then (1 - target)·self - log-sigmoid in place. With
/// pos_weight the log weight (pos_weight - 1)·target + 1 comes between.
Outputs binary_cross_entropy_with_logits(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const std::array<Value, 1> input{a[0]};
  const auto like_input = [&] { return elementwise(m, x->dtype, input); };
  const Tensor log_sigmoid = like_input();
  Tensor log_weight;
  if (a.given(3)) {
    const Tensor& positive = a.tensor(3);
    const Tensor reduced = empty_beside(m, positive, positive->sizes);
    const std::array<Value, 2> product{reduced, a[1]};
    log_weight = elementwise(m, x->dtype, product);
  }
  const Tensor rest = log_weight ? (log_weight.reset(), like_input()) : like_input();
  if (a.integer(4) == none) return {rest};
  return {reduce(m, rest, {}, false, x->dtype)};
}

/// mse_loss_backward, smooth_l1_loss_backward, huber_loss_backward: (grad_output, self, target, ...).
Outputs of_self_and_target(Shadow& m, Args a) {
  const auto inputs = a.values().subspan(1, 2);
  return {elementwise(m, result_type(inputs), inputs)};
}

/// (grad_output, self, target, reduction): three temporaries of the input's size before the result.
Outputs soft_margin_loss_backward(Shadow& m, Args a) {
  const std::array<Value, 2> inputs{a[1], a[2]};
  const auto temporary = [&] { return elementwise(m, a.tensor(1)->dtype, inputs); };
  Tensor exponent = temporary();
  Tensor scaled = temporary();
  Tensor shifted = temporary();
  scaled.reset();
  exponent.reset();
  Tensor out = temporary();
  shifted.reset();
  return {out};
}

Outputs multi_margin_loss(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const std::int64_t rows = x->dim() == 2 ? x->sizes[0] : 1;
  const bool reduced = a.integer(5) != none && x->dim() == 2;
  Tensor out = empty_beside(m, x, a.integer(5) == none && x->dim() == 2 ? Dims{rows} : Dims{});
  const Tensor each = reduced ? empty_beside(m, x, {rows}) : Tensor();
  if (reduced) reduce_scratch(m, each, {});
  return {out};
}

Outputs multilabel_margin_loss_forward(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const std::int64_t rows = x->dim() == 2 ? x->sizes[0] : 1;
  Tensor is_target = empty_beside(m, x, a.tensor(1)->sizes);
  if (a.integer(2) == none) return {empty_beside(m, x, x->dim() == 2 ? Dims{rows} : Dims{}), is_target};
  const Tensor each = x->dim() == 2 ? empty_beside(m, x, {rows}) : Tensor();
  Tensor out = empty_beside(m, x, {});
  if (each) reduce_scratch(m, each, {});
  return {out, is_target};
}

/// Gradient of the input (argument 1), its size and strides.
Outputs of_input(Shadow& m, Args a) {
  return {empty_in_format(m, a.tensor(1), DType::undefined, MemoryFormat::preserve)};
}

// ---- negative log likelihood --------------------------------------------------------------------------------------

/// (self, target, weight, reduction, ignore_index) -> (output, total_weight); also for images [N, C, H, W].
Outputs nll_loss_forward(Shadow& m, Args a) {
  const Tensor &x = a.tensor(0), &target = a.tensor(1);
  const Tensor input = x->dim() > 2 ? m.contiguous(x) : x;
  const bool each = a.integer(3) == none && x->dim() >= 2;
  Tensor out = empty_beside(m, x, each ? target->sizes : Dims{});
  return {out, empty_beside(m, x, {})};
}

/// zeros of the log-probabilities' size.
Outputs nll_loss_backward(Shadow& m, Args a) {
  const Tensor& x = a.tensor(1);
  return {x->dim() > 2 ? empty_in_format(m, x, DType::undefined, MemoryFormat::preserve)
                       : empty_beside(m, x, x->sizes)};
}

template <OperatorName forward>
Outputs nll_loss(Shadow& m, Args a) {
  return {m.all(forward.view(), a[0], a[1], a[2], a[3], a[4])[0]};
}

/// By the number of dimensions: [N, C] and [C] directly, images as they are, others as [N, C, 1, rest].
Outputs nll_loss_nd(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  if (x->dim() < 1) throw bad_input("nll_loss of a tensor without dimensions");
  if (x->dim() <= 2) return m.all("aten::nll_loss", x, a[1], a[2], a[3], a[4]);
  if (x->dim() == 4) return m.all("aten::nll_loss2d", x, a[1], a[2], a[3], a[4]);
  const std::int64_t n = x->sizes[0], c = x->sizes[1];
  const std::int64_t rest = x->count() / std::max<std::int64_t>(1, n * c);
  Dims out(x->sizes.begin(), x->sizes.end());
  out.erase(out.begin() + 1);
  const Tensor input = m.one("aten::reshape", m.one("aten::contiguous", x), Dims{n, c, 1, rest});
  const Tensor target = m.one("aten::reshape", m.one("aten::contiguous", a[1]), Dims{n, 1, rest});
  const Tensor loss = m.one("aten::nll_loss2d", input, target, a[2], a[3], a[4]);
  return a.integer(3) == none ? m.all("aten::view", loss, out) : Outputs{loss};
}

// ---- cross entropy ------------------------------------------------------------------------------------------------

Tensor reduced(Shadow& m, const Tensor& loss, std::int64_t reduction) {
  if (reduction == mean) return m.one("aten::mean", loss);
  if (reduction == sum) return m.one("aten::sum", loss);
  return loss;
}

/// Targets are probabilities of the classes.
Outputs of_probabilities(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  Tensor target = a.tensor(1);
  const double smoothing = a.real(5);
  const std::int64_t reduction = a.integer(3);
  const std::int64_t class_dim = x->dim() == 1 ? 0 : 1;
  const std::int64_t classes = x->sizes[static_cast<std::size_t>(class_dim)];
  const Tensor log_probabilities = m.one("aten::log_softmax.int", x, class_dim, x->dtype);
  if (smoothing > 0) {
    const Tensor scaled = m.one("aten::mul.Scalar", target, 1 - smoothing);
    target = m.one("aten::add.Scalar", scaled, smoothing / static_cast<double>(std::max<std::int64_t>(classes, 1)));
  }
  Tensor weight = a.tensor(2);
  if (weight && x->dim() > 1) {
    Dims sizes(x->dim(), 1);
    sizes[1] = weight->count();
    weight = m.one("aten::view", weight, sizes);
  }
  const Tensor unweighted = m.one("aten::mul.Tensor", log_probabilities, target);
  const Tensor product = weight ? m.one("aten::mul.Tensor", unweighted, weight) : unweighted;
  const Tensor total =
      reduction == none ? m.one("aten::sum.dim_IntList", product, Dims{class_dim}, false) : m.one("aten::sum", product);
  const Tensor negative = m.one("aten::neg", total);
  if (reduction != mean) return {negative};
  return m.all("aten::div.Scalar", negative,
               std::max<std::int64_t>(x->count() / std::max<std::int64_t>(classes, 1), 1));
}

/// A share of the loss is the mean over all classes; ignored targets are masked out of it.
Outputs of_smoothed_labels(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const double smoothing = a.real(5);
  const std::int64_t reduction = a.integer(3);
  const std::int64_t class_dim = x->dim() == 1 ? 0 : 1;
  const std::int64_t classes = x->sizes[static_cast<std::size_t>(class_dim)];
  const Tensor log_probabilities = m.one("aten::log_softmax.int", x, class_dim, x->dtype);
  const Tensor nll = m.one("aten::nll_loss_nd", log_probabilities, a[1], a[2], reduction, a[4]);

  Tensor smooth;
  Tensor weight = a.tensor(2);
  if (weight) {
    if (x->dim() > 1) {
      Dims sizes(x->dim(), 1);
      sizes[1] = weight->count();
      weight = m.one("aten::view", weight, sizes);
    }
    smooth = m.one("aten::neg", m.one("aten::sum.dim_IntList", m.one("aten::mul.Tensor", log_probabilities, weight),
                                      Dims{class_dim}, false));
  } else {
    smooth = m.one("aten::neg", m.one("aten::sum.dim_IntList", log_probabilities, Dims{class_dim}, false));
  }
  const Tensor ignored = m.one("aten::eq.Scalar", a[1], a[4]);
  m.all("aten::masked_fill_.Scalar", smooth, ignored, 0.0);

  const Tensor total = [&] {
    if (reduction != mean) return reduced(m, smooth, reduction);
    const Tensor counted = weight ? m.one("aten::gather", a[2], 0, m.one("aten::flatten.using_ints", a[1], 0, -1))
                                  : m.one("aten::bitwise_not", ignored);
    const Tensor count = m.one("aten::sum", counted);
    const Tensor numerator = m.one("aten::sum", smooth);
    return m.one("aten::div.Tensor", numerator, count);
  }();
  const Tensor second =
      m.one("aten::mul.Scalar", total, smoothing / static_cast<double>(std::max<std::int64_t>(classes, 1)));
  const Tensor first = m.one("aten::mul.Scalar", nll, 1 - smoothing);
  return m.all("aten::add.Tensor", first, second);
}

/// (self, target, weight, reduction, ignore_index, label_smoothing)
Outputs cross_entropy_loss(Shadow& m, Args a) {
  const Tensor &x = a.tensor(0), &target = a.tensor(1);
  if (x->dim() == 0) throw bad_input("cross_entropy_loss of a tensor without dimensions");
  if (x->sizes == target->sizes && is_float(target->dtype)) return of_probabilities(m, a);
  if (a.real(5) > 0) return of_smoothed_labels(m, a);
  const Tensor log_probabilities = m.one("aten::log_softmax.int", x, x->dim() == 1 ? 0 : 1, x->dtype);
  return m.all("aten::nll_loss_nd", log_probabilities, target, a[2], a[3], a[4]);
}

// ---- connectionist temporal classification ------------------------------------------------------------------------

/// Longest target: the length itself when it is known here, else as many as there is room for.
std::int64_t longest_target(const Value& lengths, const Tensor& targets) {
  if (!lengths.is_integers() || lengths.integers().empty()) return targets->sizes.empty() ? 0 : targets->sizes.back();
  return std::ranges::max(lengths.integers());
}

/// Input lengths, target lengths and offsets on the device, freed in the order in which the kernel's locals go.
struct Lengths {
  Lengths(Shadow& m, std::int64_t batch) {
    for (auto& t : tensors) t = m.empty({batch}, DType::i64);
  }
  ~Lengths() {
    for (const std::size_t i : {1, 0, 2}) tensors[i].reset();
  }
  Lengths(const Lengths&) = delete;
  Lengths& operator=(const Lengths&) = delete;
  std::array<Tensor, 3> tensors;
};

/// (log_probs [T, N, C], targets, input_lengths, target_lengths, blank, zero_infinity) -> (loss, log_alpha)
Outputs ctc_loss_forward(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  if (x->dim() != 3) throw bad_input("ctc_loss of log-probabilities " + text_of(x->sizes));
  const std::int64_t steps = x->sizes[0], batch = x->sizes[1];
  const Lengths lengths(m, batch);
  Tensor log_alpha = m.empty({batch, steps, 2 * longest_target(a[3], a.tensor(1)) + 1}, x->dtype);
  return {m.empty({batch}, x->dtype), log_alpha};
}

/// (grad, log_probs, targets, input_lengths, target_lengths, loss, log_alpha, blank, zero_infinity)
Outputs ctc_loss_backward(Shadow& m, Args a) {
  const Tensor &x = a.tensor(1), &log_alpha = a.tensor(6);
  const Lengths lengths(m, x->sizes[1]);
  const Tensor log_beta = m.empty_like(log_alpha);
  return {m.empty(x->sizes, x->dtype)};
}

/// (log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity); [T, C] is a batch of one.
template <OperatorName forward>
Outputs ctc_loss(Shadow& m, Args a) {
  const Tensor& x = a.tensor(0);
  const Tensor batched = x->dim() == 3 ? x : m.one("aten::unsqueeze", x, 1);
  Tensor loss = std::move(m.all(forward.view(), batched, a[1], a[2], a[3], a[4], a[6])[0]).take_tensor();
  if (a.boolean(6)) {
    const Tensor zero = m.one("aten::scalar_tensor", 0.0, loss->dtype);
    loss = m.one("aten::where.self", m.one("aten::eq.Scalar", loss, 0.0), zero, loss);
  }
  if (a.integer(5) != mean) return {reduced(m, loss, a.integer(5))};
  const Tensor lengths = [&] {
    const Tensor given = m.one("aten::empty_like", loss);
    return m.one("aten::clamp_min", given, 1);
  }();
  return {m.one("aten::mean", m.one("aten::div.Tensor", loss, lengths))};
}

// ---- other composites ---------------------------------------------------------------------------------------------

Outputs multilabel_margin_loss(Shadow& m, Args a) {
  return {m.all("aten::multilabel_margin_loss_forward", a[0], a[1], a[2])[0]};
}

Outputs l1_loss(Shadow& m, Args a) {
  return {reduced(m, m.one("aten::abs", m.one("aten::sub.Tensor", a[0], a[1])), a.integer(2))};
}

Outputs kl_div(Shadow& m, Args a) {
  Tensor out;
  if (a.boolean(3)) {
    const Tensor difference = m.one("aten::sub.Tensor", a[1], a[0]);
    out = m.one("aten::mul.Tensor", m.one("aten::exp", a[1]), difference);
  } else {
    const Tensor cross = m.one("aten::mul.Tensor", a[1], a[0]);
    out = m.one("aten::sub.Tensor", m.one("aten::xlogy.Tensor", a[1], a[1]), cross);
  }
  return {reduced(m, out, a.integer(2))};
}

Outputs poisson_nll_loss(Shadow& m, Args a) {
  Tensor loss;
  if (a.boolean(2)) {
    const Tensor product = m.one("aten::mul.Tensor", a[1], a[0]);
    loss = m.one("aten::sub.Tensor", m.one("aten::exp", a[0]), product);
  } else {
    const Tensor logarithm = m.one("aten::log", m.one("aten::add.Scalar", a[0], a[4]));
    loss = m.one("aten::sub.Tensor", a[0], m.one("aten::mul.Tensor", a[1], logarithm));
  }
  return {reduced(m, loss, a.integer(5))};
}

Outputs margin_ranking_loss(Shadow& m, Args a) {
  Tensor out;
  {
    const Tensor difference = m.one("aten::sub.Tensor", a[0], a[1]);
    const Tensor negative = m.one("aten::neg", a[2]);
    const Tensor product = m.one("aten::mul.Tensor", negative, difference);
    out = m.one("aten::add.Scalar", product, a[3]);
  }
  m.all("aten::clamp_min_", out, 0);
  return {reduced(m, out, a.integer(4))};
}

Outputs pairwise_distance(Shadow& m, Args a) {
  const Tensor &x = a.tensor(0), &y = a.tensor(1);
  const std::int64_t last = static_cast<std::int64_t>(std::max(x->dim(), y->dim())) - 1;
  const Tensor difference = m.one("aten::sub.Tensor", x, y);
  const Tensor shifted = m.one("aten::add.Scalar", difference, a[3]);
  return m.all("aten::norm.ScalarOpt_dim", shifted, a[2], Dims{last}, a[4]);
}

/// (anchor, positive, negative, margin, p, eps, swap, reduction)
Outputs triplet_margin_loss(Shadow& m, Args a) {
  const Tensor near = m.one("aten::pairwise_distance", a[0], a[1], a[4], a[5]);
  Tensor far = m.one("aten::pairwise_distance", a[0], a[2], a[4], a[5]);
  if (a.boolean(6)) far = m.one("aten::minimum", far, m.one("aten::pairwise_distance", a[1], a[2], a[4], a[5]));
  Tensor loss;
  {
    const Tensor shifted = m.one("aten::add.Scalar", near, a[3]);
    const Tensor margin = m.one("aten::sub.Tensor", shifted, far);
    loss = m.one("aten::clamp_min", margin, 0);
  }
  return {reduced(m, loss, a.integer(7))};
}

/// (x1, x2, dim, eps): norms of both, both divided by their norms, and the products' sum.
Outputs cosine_similarity(Shadow& m, Args a) {
  const DType dtype = float_result_type(a.values().first(2));
  const Tensor x = m.one("aten::to.dtype", a[0], dtype);
  const Tensor y = m.one("aten::to.dtype", a[1], dtype);
  const Dims dims{a.integer(2)};
  const auto norm_of = [&](const Tensor& t) { return m.one("aten::linalg_vector_norm", t, 2, dims, true); };
  // The norms are copied to be bounded from below in place.
  const Tensor first_bounded = m.one("aten::clone", norm_of(x));
  const Tensor second_bounded = m.one("aten::clone", norm_of(y));
  const Tensor eps = m.one("aten::scalar_tensor", a[3]);
  const bool grad = m.grad_enabled();
  m.set_grad_enabled(false);
  m.all("aten::clamp_min_.Tensor", first_bounded, eps);
  m.all("aten::clamp_min_.Tensor", second_bounded, eps);
  m.set_grad_enabled(grad);
  const Tensor right = m.one("aten::div.Tensor", y, second_bounded);
  const Tensor left = m.one("aten::div.Tensor", x, first_bounded);
  return m.all("aten::sum.dim_IntList", m.one("aten::mul.Tensor", left, right), dims, false);
}

/// number - t, as C++ writes it: a tensor like t, filled, then subtracted from in place.
Tensor subtracted_from(Shadow& m, const Value& number, const Tensor& t) {
  const Tensor filled = m.one("aten::empty_like", t);
  m.all("aten::fill_.Scalar", filled, number);
  return m.one("aten::sub_.Tensor", filled, t);
}

/// where(target != value, chosen, zeros), and with == for `equal`.
Tensor where_target(Shadow& m, bool equal, const Value& target, int value, const Tensor& chosen, const Tensor& zeros) {
  return m.one("aten::where.self", m.one(equal ? "aten::eq.Scalar" : "aten::ne.Scalar", target, value), chosen, zeros);
}

/// (self, target, margin, reduction)
Outputs hinge_embedding_loss(Shadow& m, Args a) {
  const Tensor zeros = m.one("aten::zeros_like", a[0]);
  const Tensor margin = subtracted_from(m, a[2], a.tensor(0));
  m.all("aten::clamp_min_", margin, 0);
  const Tensor other = where_target(m, false, a[1], 1, margin, zeros);
  const Tensor same = where_target(m, false, a[1], -1, a.tensor(0), zeros);
  const Tensor output = m.one("aten::add.Tensor", other, same);
  return {reduced(m, output, a.integer(3))};
}

/// (input1, input2, target, margin, reduction)
Outputs cosine_embedding_loss(Shadow& m, Args a) {
  const Dims dims{a.tensor(0)->dim() == 1 ? 0 : 1};
  const auto products = [&](const Value& x, const Value& y) {
    return m.one("aten::sum.dim_IntList", m.one("aten::mul.Tensor", x, y), dims, false);
  };
  const auto squares = [&](const Value& x) {
    const Tensor product = m.one("aten::mul.Tensor", x, x);
    const Tensor total = m.one("aten::sum.dim_IntList", product, dims, false);
    return m.one("aten::add.Scalar", total, 1e-12);
  };
  const Tensor product = products(a[0], a[1]);
  const Tensor first = squares(a[0]);
  const Tensor second = squares(a[1]);
  const Tensor denominator = m.one("aten::mul.Tensor", first, second);
  m.all("aten::sqrt_", denominator);
  const Tensor cosine = m.one("aten::div.Tensor", product, denominator);
  const Tensor zeros = m.one("aten::zeros_like", cosine);
  const Tensor near = subtracted_from(m, 1, cosine);
  const Tensor far = m.one("aten::sub.Scalar", cosine, a[3]);
  m.all("aten::clamp_min_", far, 0);
  const Tensor same = where_target(m, true, a[2], 1, near, zeros);
  const Tensor other = where_target(m, true, a[2], -1, far, zeros);
  const Tensor output = m.one("aten::add.Tensor", same, other);
  return {reduced(m, output, a.integer(4))};
}

constexpr auto kernel = Operator::Kind::kernel;
constexpr auto composite = Operator::Kind::composite;

constexpr Operator operators[] = {
    {"aten::mse_loss", kernel, in_full_block},
    {"aten::mse_loss_backward", kernel, of_self_and_target},
    {"aten::smooth_l1_loss", kernel, in_full_block},
    {"aten::smooth_l1_loss_backward", kernel, of_self_and_target},
    {"aten::huber_loss", kernel, huber_loss},
    {"aten::huber_loss_backward", kernel, of_self_and_target},
    {"aten::binary_cross_entropy", kernel, scalar_in_full_block<3>},
    {"aten::binary_cross_entropy_backward", kernel, binary_cross_entropy_backward},
    {"aten::binary_cross_entropy_with_logits", kernel, binary_cross_entropy_with_logits},
    {"aten::soft_margin_loss", kernel, scalar_in_full_block<2>},
    {"aten::soft_margin_loss_backward", kernel, soft_margin_loss_backward},
    {"aten::multi_margin_loss", kernel, multi_margin_loss},
    {"aten::multi_margin_loss_backward", kernel, of_input},
    {"aten::multilabel_margin_loss_forward", kernel, multilabel_margin_loss_forward},
    {"aten::multilabel_margin_loss_backward", kernel, of_input},
    {"aten::nll_loss_forward", kernel, nll_loss_forward},
    {"aten::nll_loss2d_forward", kernel, nll_loss_forward},
    {"aten::nll_loss_backward", kernel, nll_loss_backward},
    {"aten::nll_loss2d_backward", kernel, nll_loss_backward},
    {"aten::_ctc_loss", kernel, ctc_loss_forward},
    {"aten::_ctc_loss.Tensor", kernel, ctc_loss_forward},
    {"aten::_ctc_loss_backward", kernel, ctc_loss_backward},
    {"aten::_ctc_loss_backward.Tensor", kernel, ctc_loss_backward},
    {"aten::ctc_loss.IntList", composite, ctc_loss<"aten::_ctc_loss">},
    {"aten::ctc_loss.Tensor", composite, ctc_loss<"aten::_ctc_loss.Tensor">},
    {"aten::nll_loss", composite, nll_loss<"aten::nll_loss_forward">},
    {"aten::nll_loss2d", composite, nll_loss<"aten::nll_loss2d_forward">},
    {"aten::nll_loss_nd", composite, nll_loss_nd},
    {"aten::cross_entropy_loss", composite, cross_entropy_loss},
    {"aten::multilabel_margin_loss", composite, multilabel_margin_loss},
    {"aten::l1_loss", composite, l1_loss},
    {"aten::kl_div", composite, kl_div},
    {"aten::poisson_nll_loss", composite, poisson_nll_loss},
    {"aten::margin_ranking_loss", composite, margin_ranking_loss},
    {"aten::pairwise_distance", composite, pairwise_distance},
    {"aten::triplet_margin_loss", composite, triplet_margin_loss},
    {"aten::cosine_similarity", composite, cosine_similarity},
    {"aten::hinge_embedding_loss", composite, hinge_embedding_loss},
    {"aten::cosine_embedding_loss", composite, cosine_embedding_loss},
};

}  // namespace

std::span<const Operator> loss_operators() { return operators; }

}  // namespace headroom::shadow
