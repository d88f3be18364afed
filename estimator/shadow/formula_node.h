// FormulaNode: the autograd node of an operator, driven by PyTorch's derivative table.
#pragma once

#include <vector>

#include "estimator/shadow/shadow.h"

namespace headroom::shadow {

class FormulaNode final : public Node, public Pooled<FormulaNode> {
 public:
  /// Collects the edges and keeps what backward needs of the arguments; results follow with `save_results`.
  FormulaNode(Shadow& m, const Shadow::Entry& entry, std::span<const Value> args);
  ~FormulaNode() override;

  std::string_view name() const override { return entry_.name; }
  Gradients apply(Shadow& m, const Gradients& grads) override;
  void release() override;

  void save_results(Shadow& m, const Outputs& outputs);

 private:
  /// A saved attribute: one tensor, a list of tensors, or a number where a tensor could have been.
  struct Kept {
    const aten::Saved* what;
    SavedVariable tensor;
    std::vector<SavedVariable> tensors;  ///< of a list
    Value number;
    bool list = false;
  };
  /// Place of the first edge of argument i, and how many it has.
  struct Edges {
    std::uint8_t argument;
    std::uint32_t first, count;
    bool list;
  };

  const Shadow::Entry& entry_;
  std::vector<Kept> kept_;        ///< in release order
  std::vector<Value> arguments_;  ///< what formulas name: numbers as they are, tensors as geometry
  std::vector<Value> results_;    ///< geometry of the named results
  std::vector<Edges> edges_;
};

}  // namespace headroom::shadow
