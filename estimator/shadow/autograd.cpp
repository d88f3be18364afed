#include "estimator/shadow/autograd.h"

#include <algorithm>
#include <utility>

#include "estimator/shadow/checkpoint.h"
#include "estimator/shadow/kernels/reduce.h"
#include "estimator/shadow/portrait.h"
#include "estimator/shadow/shadow.h"

namespace headroom::shadow {
namespace {

/// Sequence number of AccumulateGrad: runs as soon as it is ready.
constexpr std::uint64_t accumulate_first = ~std::uint64_t{0};

/// torch/csrc/autograd/functions/accumulate_grad.{h,cpp}.
class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(Tensor variable) : variable_(std::move(variable)) {
    sequence = accumulate_first;
    inputs.push_back({variable_->sizes, variable_->dtype});
  }
  ~AccumulateGrad() override { variable_->accumulator = nullptr; }

  std::string_view name() const override { return "AccumulateGrad"; }
  Gradients apply(Shadow&, const Gradients&) override { return {}; }
  bool portray(Portrait& p) const override {
    p.add(variable_);
    return true;
  }

  void accumulate(Shadow& m, Tensor grad) {
    if (!grad) return;
    TensorImpl& v = *variable_;
    if (v.grad) {
      // variable.grad += grad in place (GradMode is off): no bytes, unless layouts force a new tensor: never for dense.
      return;
    }
    const bool stolen = grad.use_count() <= 1 && keeps_layout(*grad, v);
    Tensor g;
    if (stolen) {
      g = m.alias(grad);
    } else {
      g = is_dense(v) ? m.empty_strided(v.sizes, v.strides, grad->dtype) : m.empty(v.sizes, grad->dtype);
    }
    m.recorder().becomes(*g->storage, Category::gradients);
    g->label = v.label;
    if (v.label >= 0) m.recorder().name(*g->storage, v.label);
    v.grad = std::move(g);
  }

 private:
  /// utils::obeys_layout_contract.
  static bool keeps_layout(const TensorImpl& grad, const TensorImpl& variable) {
    if (!is_dense(variable)) return is_contiguous(grad);
    for (std::size_t i = 0; i < variable.sizes.size(); ++i)
      if (variable.sizes[i] != 1 && variable.strides[i] != grad.strides[i]) return false;
    return true;
  }

  Tensor variable_;
};

/// Gradients that wait for a node, one buffer per node (input_buffer.cpp).
using Buffer = boost::container::small_vector<Tensor, 1>;
struct Task {
  Ref<Node> node;
  Buffer grads;
};

void add_to_buffer(Shadow& m, Buffer& buffer, std::size_t at, Tensor grad) {
  if (!grad) return;
  Tensor& old = buffer[at];
  if (!old) {
    old = std::move(grad);
    return;
  }
  // In place only where nobody else can see it: a fresh dense tensor. A view's storage has two owners (its base).
  if (is_dense(*old) && old.use_count() == 1 && old->storage.use_count() == 1) return;
  Tensor sum = m.one("aten::add.Tensor", old, grad);
  old = std::move(sum);
}

/// sum_to, of which a network has few different ones.
Tensor summed(Shadow& m, const Tensor& grad, const Dims& sizes) {
  static constexpr char code{};
  Signature s(&code, m.mode() | static_cast<std::uint64_t>(m.recorder().op) << 32);
  s.add(grad);
  for (const std::int64_t n : sizes) s.add(Value(n));
  Outputs sum = m.repeatable(s, [&] { return Outputs{Value(sum_to(m, grad, sizes))}; });
  return std::move(sum[0]).take_tensor();
}

/// validate_outputs (engine.cpp): per edge, broadcast gradients are summed, then brought to the input's dtype.
void validate(Shadow& m, const Node& n, Gradients& grads) {
  for (std::size_t i = 0; i < n.next.size() && i < grads.size(); ++i) {
    const Edge& e = n.next[i];
    if (!e.node) {
      grads[i].reset();
      continue;
    }
    if (!grads[i]) continue;
    const InputMetadata& meta = e.node->inputs[e.input_nr];
    if (grads[i]->sizes != meta.sizes) grads[i] = summed(m, grads[i], meta.sizes);
    if (grads[i]->dtype != meta.dtype && is_float(grads[i]->dtype) && is_float(meta.dtype))
      grads[i] = m.empty_like(grads[i], meta.dtype);
  }
}

/// A node's scratch in a backward around this one: a leaf's accumulator may be in both.
struct OuterScratch {
  Node* node;
  std::uint32_t dependencies, visit;
  std::int32_t buffer;
};

struct Reached {
  std::size_t nodes = 0;
  std::vector<OuterScratch> outer;  ///< of nodes that a backward with a visit of `outermost` or later is at work on
};

/// Marks what is reachable with `visit` and counts the edges into it.
Reached count_dependencies(std::span<const Tensor> roots, std::uint32_t visit, std::uint32_t outermost) {
  Reached reached;
  std::vector<Node*> stack;
  const auto reach = [&](Node* n) {
    if (n->visit != visit) {
      if (n->visit >= outermost && n->visit < visit) reached.outer.push_back({n, n->dependencies, n->visit, n->buffer});
      n->visit = visit;
      n->dependencies = 0;
      n->buffer = -1;
      stack.push_back(n);
      ++reached.nodes;
    }
    ++n->dependencies;
  };
  for (const Tensor& root : roots)
    if (root->grad_fn) reach(root->grad_fn.get());
  while (!stack.empty()) {
    Node* n = stack.back();
    stack.pop_back();
    for (const Edge& e : n->next)
      if (e.node) reach(e.node.get());
  }
  return reached;
}

}  // namespace

void Node::destroy(Node* n) {
  // A long chain of nodes must not be unwound by recursion (deleteNode in function.cpp).
  static thread_local std::vector<Node*> pending;
  static thread_local bool running = false;
  pending.push_back(n);
  if (running) return;
  running = true;
  while (!pending.empty()) {
    Node* one = pending.back();
    pending.pop_back();
    delete one;
  }
  running = false;
}

SavedVariable::SavedVariable(Shadow& m, const Tensor& t, bool is_output) {
  if (!t) return;
  if (m.checkpoint_ && !t->host) {
    if (m.checkpoint_->rerunning()) {
      // Both sides hold a detached alias: the rerun's graph goes with the rerun.
      tensor_ = m.alias(t);
      m.checkpoint_->pack_rerun(m.alias(t));
      return;
    }
    holder_ = m.checkpoint_->pack_forward();
    return;
  }
  // A result is kept through a detached alias, so that node and result do not own each other.
  tensor_ = is_output && !t->is_leaf() ? m.alias(t) : t;
  counted_ = true;
  m.recorder_.saved(*tensor_->storage);
  if (StepLog* log = m.recorder_.log)
    log->saves.push_back({m.sequence_, tensor_->storage->block, m.recorder_.mark().blocks});
}

SavedVariable::SavedVariable(SavedVariable&& o) noexcept
    : tensor_(std::move(o.tensor_)), holder_(std::move(o.holder_)), counted_(std::exchange(o.counted_, false)) {}

SavedVariable& SavedVariable::operator=(SavedVariable&& o) noexcept {
  if (this != &o) {
    reset();
    tensor_ = std::move(o.tensor_);
    holder_ = std::move(o.holder_);
    counted_ = std::exchange(o.counted_, false);
  }
  return *this;
}

SavedVariable::~SavedVariable() { reset(); }

void SavedVariable::reset() {
  if (counted_ && tensor_->storage->recorder) tensor_->storage->recorder->unsaved(*tensor_->storage);
  counted_ = false;
  tensor_.reset();
  holder_.reset();
}

bool SavedVariable::portray(Portrait& p) const {
  p.add(tensor_);
  return !holder_;
}

Tensor SavedVariable::unpack(Shadow& m) const {
  if (holder_) return holder_->frame->unpack(m, holder_->number);
  return tensor_;
}

Edge gradient_edge(Shadow&, const Tensor& t) {
  if (!t || !t->needs_grad()) return {};
  if (t->grad_fn) return {t->grad_fn, t->output_nr};
  if (!t->accumulator) {
    Ref<Node> node(new AccumulateGrad(t));
    t->accumulator = node.get();
    return {std::move(node), 0};
  }
  return {Ref<Node>(t->accumulator), 0};
}

void run_backward(Shadow& m, std::span<const Tensor> roots, std::vector<Tensor> root_grads) {
  const bool grad_mode = std::exchange(m.grad_enabled_, false);
  const bool thread = std::exchange(m.on_autograd_thread_, true);
  const auto module = m.recorder_.module;
  const auto site = m.recorder_.site;
  const auto op = m.recorder_.op;

  const std::uint32_t visit = ++m.visits_;
  const std::uint32_t outermost = std::exchange(m.outermost_visit_, thread ? m.outermost_visit_ : visit);
  const Reached reached = count_dependencies(roots, visit, m.outermost_visit_);
  std::vector<Task> tasks;
  tasks.reserve(reached.nodes);
  std::vector<std::pair<std::uint64_t, std::int32_t>> ready;  // heap: largest sequence number first, then first come
  const auto enqueue = [&](std::int32_t task) {
    ready.emplace_back(tasks[static_cast<std::size_t>(task)].node->sequence, -task);
    std::push_heap(ready.begin(), ready.end());
  };
  const auto send = [&](const Ref<Node>& to, std::uint32_t input_nr, Tensor grad) {
    if (to->buffer < 0) {
      to->buffer = static_cast<std::int32_t>(tasks.size());
      tasks.push_back({to, Buffer(to->inputs.size())});
    }
    add_to_buffer(m, tasks[static_cast<std::size_t>(to->buffer)].grads, input_nr, std::move(grad));
    if (--to->dependencies == 0) enqueue(to->buffer);
  };
  for (std::size_t i = 0; i < roots.size(); ++i)
    if (roots[i]->grad_fn) send(roots[i]->grad_fn, roots[i]->output_nr, std::move(root_grads[i]));

  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end());
    const auto task = static_cast<std::size_t>(-ready.back().second);
    ready.pop_back();
    const Ref<Node> node = std::move(tasks[task].node);
    Buffer received = std::move(tasks[task].grads);
    m.recorder_.module = node->module;
    m.recorder_.site = node->site;
    if (node->sequence == accumulate_first) {
      static_cast<AccumulateGrad&>(*node).accumulate(m, std::move(received[0]));
      continue;
    }
    Gradients outputs;
    StepLog::NodeRun run{.node = node->sequence, .begin = m.recorder_.mark().events};
    {
      Gradients grads;
      for (Tensor& g : received) grads.push_back(std::move(g));
      received.clear();
      outputs = node->apply(m, grads);
      run.applied = m.recorder_.mark().events;
      validate(m, *node, outputs);
    }
    node->release();
    run.released = m.recorder_.mark().events;
    if (StepLog* log = m.recorder_.log) log->nodes.push_back(run);
    for (std::size_t i = 0; i < node->next.size(); ++i) {
      const Edge& e = node->next[i];
      if (e.node) send(e.node, e.input_nr, i < outputs.size() ? std::move(outputs[i]) : Tensor{});
    }
  }
  for (const OuterScratch& o : reached.outer) {
    o.node->dependencies = o.dependencies;
    o.node->visit = o.visit;
    o.node->buffer = o.buffer;
  }
  m.outermost_visit_ = outermost;
  m.recorder_.module = module;
  m.recorder_.site = site;
  m.recorder_.op = op;
  m.on_autograd_thread_ = thread;
  m.grad_enabled_ = grad_mode;
}

}  // namespace headroom::shadow
