// Optimizers that work parameter by parameter: torch.optim.Adafactor (its default), torch.optim.Muon, Lion
// (lion-pytorch) and bitsandbytes' AdamW8bit. `--optimizer-impl` changes nothing here.
#include <algorithm>

#include "estimator/step/optimizer.h"

namespace headroom {
namespace {

constexpr double lr = 1e-5;

/// A loop over the parameters that have a gradient.
class PerParameter : public Optimizer {
 public:
  explicit PerParameter(std::vector<OptimizerParameter> p) : parameters_(std::move(p)) {}

  void step(OptimizerContext& c) override {
    const SlotId grad = c.fresh();
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!c.machine().has_grad(parameters_[i].slot)) continue;
      c.machine().load_grad(grad, parameters_[i].slot);
      update(c, i, grad);
      c.machine().drop(grad);
    }
    for (const SlotId s : leftover_)
      if (s.valid()) c.machine().drop(s);
    leftover_.clear();
  }

 protected:
  virtual void update(OptimizerContext& c, std::size_t i, SlotId grad) = 0;

  SlotId state(OptimizerContext& c, const Dims& dims, DType dtype, std::string_view name) {
    const SlotId s = c.fresh();
    c.machine().create(s, {.dims = dims, .dtype = dtype, .category = Category::optimizer_state, .name = name});
    return s;
  }
  /// Python's `k`-th local variable of the loop: it keeps its value until it is bound again.
  void bind(OptimizerContext& c, std::size_t k, SlotId value) {
    if (leftover_.size() <= k) leftover_.resize(k + 1);
    if (leftover_[k].valid()) c.machine().drop(leftover_[k]);
    leftover_[k] = value;
  }

  std::vector<OptimizerParameter> parameters_;

 private:
  std::vector<SlotId> leftover_;
};

class Adafactor final : public PerParameter {
 public:
  explicit Adafactor(std::vector<OptimizerParameter> p) : PerParameter(std::move(p)), state_(parameters_.size()) {}

 private:
  struct State {
    SlotId row, column, variance;
  };
  enum Local : std::size_t { row_mean, col_mean, grad_squared, update_ };

  void update(OptimizerContext& c, std::size_t i, SlotId grad) override {
    const OptimizerParameter& p = parameters_[i];
    State& s = state_[i];
    const bool matrix = p.dims.size() > 1;
    if (!s.row.valid() && !s.variance.valid()) {
      if (matrix) {
        Dims row = p.dims, column = p.dims;
        row.back() = 1;
        column[column.size() - 2] = 1;
        s.row = state(c, row, p.dtype, "row_var");
        s.column = state(c, column, p.dtype, "col_var");
      } else {
        s.variance = c.state_like(p);
      }
    }
    const SlotId norm = c.one("aten::linalg_vector_norm", {p.slot, 2.0});
    c.machine().drop(norm);
    c.call("aten::mul_.Scalar", {p.slot, 1 - lr * 1e-2});
    SlotId estimate;
    if (matrix) {
      const auto mean_square = [&](std::int64_t dim, SlotId into, Local local) {
        const SlotId mean = c.one("aten::norm.ScalarOpt_dim", {grad, 2.0, Dims{dim}, true});
        c.call("aten::pow_.Scalar", {mean, std::int64_t{2}});
        c.call("aten::div_.Scalar", {mean, static_cast<double>(p.dims[p.dims.size() - (dim == -1 ? 1u : 2u)])});
        bind(c, local, mean);
        c.call("aten::lerp_.Scalar", {into, mean, 0.1});
      };
      mean_square(-1, s.row, row_mean);
      mean_square(-2, s.column, col_mean);
      estimate = c.one("aten::matmul", {s.row, s.column});
      const SlotId mean = c.one("aten::mean.dim", {s.row, Dims{-2}, true});
      c.call("aten::clamp_", {mean, eps});
      c.call("aten::div_.Tensor", {estimate, mean});
      c.machine().drop(mean);
      finish(c, p, grad, estimate);
    } else {
      const SlotId squared = c.one("aten::mul.Tensor", {grad, grad});
      bind(c, grad_squared, squared);
      c.call("aten::lerp_.Scalar", {s.variance, squared, 0.1});
      estimate = c.one("aten::clone", {s.variance});
      finish(c, p, grad, estimate);
    }
  }

  void finish(OptimizerContext& c, const OptimizerParameter& p, SlotId grad, SlotId estimate) {
    c.call("aten::clamp_", {estimate, eps * eps});
    c.call("aten::rsqrt_", {estimate});
    bind(c, update_, estimate);
    c.call("aten::mul_.Tensor", {estimate, grad});
    const SlotId norm = c.one("aten::linalg_vector_norm", {estimate, 2.0});
    c.machine().drop(norm);
    c.call("aten::add_.Tensor", {p.slot, estimate, -lr});
  }

  static constexpr double eps = 1.1920929e-7;  ///< torch.finfo(float32).eps, the default of eps1
  std::vector<State> state_;
};

/// lion-pytorch's update_fn: the sign of an interpolation, made in a clone and a sum.
class Lion final : public PerParameter {
 public:
  explicit Lion(std::vector<OptimizerParameter> p) : PerParameter(std::move(p)), mean_(parameters_.size()) {}

 private:
  void update(OptimizerContext& c, std::size_t i, SlotId grad) override {
    const OptimizerParameter& p = parameters_[i];
    if (!mean_[i].valid()) mean_[i] = c.state_like(p);
    c.call("aten::mul_.Scalar", {p.slot, 1 - lr * 1e-2});
    const SlotId clone = c.one("aten::clone", {mean_[i]});
    c.call("aten::mul_.Scalar", {clone, 0.9});
    const SlotId sum = c.one("aten::add.Tensor", {clone, grad, 0.1});
    c.machine().drop(clone);
    c.call("aten::sign_", {sum});
    c.call("aten::add_.Tensor", {p.slot, sum, -lr});
    c.machine().drop(sum);
    c.call("aten::mul_.Scalar", {mean_[i], 0.99});
    c.call("aten::add_.Tensor", {mean_[i], grad, 0.01});
  }

  Slots mean_;
};

/// torch.optim.Muon takes matrices only; the other parameters are given to AdamW (for-loop), as its documentation says.
class Muon final : public Optimizer {
 public:
  Muon(std::vector<OptimizerParameter> matrices, std::vector<OptimizerParameter> others)
      : matrices_(std::move(matrices)), momentum_(matrices_.size()) {
    if (!others.empty()) adamw_ = make_adam(OptimizerImpl::foreach, true, std::move(others));
  }

  void step(OptimizerContext& c) override {
    const SlotId grad = c.fresh();
    for (std::size_t i = 0; i < matrices_.size(); ++i) {
      const OptimizerParameter& p = matrices_[i];
      if (!c.machine().has_grad(p.slot)) continue;
      c.machine().load_grad(grad, p.slot);
      if (!momentum_[i].valid()) momentum_[i] = c.state_like(p);
      c.call("aten::lerp_.Scalar", {momentum_[i], grad, 0.05});
      const SlotId update = c.one("aten::lerp.Scalar", {grad, momentum_[i], 0.95});
      const SlotId orthogonal = newton_schulz(c, update, p.dims[0] > p.dims[1]);
      c.machine().drop(update);
      c.call("aten::mul_.Scalar", {p.slot, 1 - lr * 0.1});
      c.call("aten::add_.Tensor", {p.slot, orthogonal, -lr});
      c.machine().drop(orthogonal);
      c.machine().drop(grad);
    }
    if (adamw_) adamw_->step(c);
  }

 private:
  /// _zeropower_via_newtonschulz: five iterations in bfloat16.
  SlotId newton_schulz(OptimizerContext& c, SlotId update, bool tall) {
    SlotId x = c.one("aten::to.dtype", {update, DType::bf16});
    const auto transpose = [&](SlotId& s) {
      const SlotId t = c.one("aten::t", {s});
      c.machine().drop(s);
      s = t;
    };
    if (tall) transpose(x);
    const SlotId norm = c.one("aten::linalg_vector_norm", {x, 2.0});
    const SlotId clamped = c.one("aten::clamp", {norm, 1e-7});
    c.call("aten::div_.Tensor", {x, clamped});
    c.machine().drop(clamped);
    c.machine().drop(norm);
    SlotId gram_before, gram_update_before;
    for (int k = 0; k < 5; ++k) {
      const SlotId t = c.one("aten::t", {x});
      const SlotId gram = c.one("aten::mm", {x, t});
      c.machine().drop(t);
      if (gram_before.valid()) c.machine().drop(gram_before);
      gram_before = gram;
      const SlotId gram_update = c.one("aten::addmm", {gram, gram, gram, -4.775, 2.0315});
      if (gram_update_before.valid()) c.machine().drop(gram_update_before);
      gram_update_before = gram_update;
      const SlotId next = c.one("aten::addmm", {x, gram_update, x, 3.4445, 1.0});
      c.machine().drop(x);
      x = next;
    }
    c.machine().drop(gram_before);
    c.machine().drop(gram_update_before);
    if (tall) transpose(x);
    return x;
  }

  std::vector<OptimizerParameter> matrices_;
  Slots momentum_;
  std::unique_ptr<Optimizer> adamw_;
};

/// bitsandbytes/optim/optimizer.py: two uint8 states with a float32 maximum per block of 256; tensors below 4,096
/// elements keep float32 states; two maps of 256 floats for all.
class AdamW8bit final : public PerParameter {
 public:
  explicit AdamW8bit(std::vector<OptimizerParameter> p) : PerParameter(std::move(p)), made_(parameters_.size()) {}

 private:
  void update(OptimizerContext& c, std::size_t i, SlotId) override {
    if (made_[i]) return;
    made_[i] = true;
    if (!maps_) {
      maps_ = true;
      for (const char* name : {"qmap1", "qmap2"}) state(c, {256}, DType::f32, name);
    }
    const OptimizerParameter& p = parameters_[i];
    const std::int64_t n = element_count(p.dims);
    const bool small = n < 4096;
    for (const char* name : {"state1", "state2"}) state(c, p.dims, small ? DType::f32 : DType::u8, name);
    if (small) return;
    for (const char* name : {"absmax1", "absmax2"}) state(c, {(n + 255) / 256}, DType::f32, name);
  }

  std::vector<bool> made_;
  bool maps_ = false;
};

}  // namespace

std::unique_ptr<Optimizer> make_adafactor(OptimizerImpl, std::vector<OptimizerParameter> p) {
  return std::make_unique<Adafactor>(std::move(p));
}
std::unique_ptr<Optimizer> make_lion(OptimizerImpl, std::vector<OptimizerParameter> p) {
  return std::make_unique<Lion>(std::move(p));
}
std::unique_ptr<Optimizer> make_muon(OptimizerImpl, std::vector<OptimizerParameter> p) {
  const auto others = std::stable_partition(p.begin(), p.end(), [](const auto& q) { return q.dims.size() == 2; });
  std::vector<OptimizerParameter> rest(others, p.end());
  p.erase(others, p.end());
  return std::make_unique<Muon>(std::move(p), std::move(rest));
}
std::unique_ptr<Optimizer> make_adamw8bit(OptimizerImpl, std::vector<OptimizerParameter> p) {
  return std::make_unique<AdamW8bit>(std::move(p));
}

}  // namespace headroom
