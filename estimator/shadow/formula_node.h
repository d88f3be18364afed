// FormulaNode: the autograd node of an operator, driven by PyTorch's derivative table.
#pragma once

#include <optional>
#include <vector>

#include "estimator/shadow/shadow.h"

namespace headroom::shadow {

/// What the nodes of all calls with one signature have in common.
class NodePlan {
 public:
  NodePlan(const Shadow::Entry& e, std::span<const Value> args);

  /// Where the gradient of argument `argument` goes: its edges, several for a list.
  struct Edges {
    std::uint8_t argument;
    std::uint32_t first, count;
    bool list;
  };
  /// A saved attribute: one tensor, or a list of tensors.
  struct Kept {
    const aten::Saved* what;
    std::uint32_t first, count;  ///< among the node's saved variables
    bool list;
    std::uint32_t place;  ///< in the order in which apply() lets go what it unpacked: results first, by their index
  };

  const Edges* edges_of(std::uint8_t argument) const;
  /// Adds what is kept of the results; nothing when it has been done before.
  void complete(const Outputs& outputs);

  const Shadow::Entry& entry;
  std::vector<Edges> edges;
  std::vector<Kept> arguments_kept, results_kept;  ///< in release order
  std::vector<Value> arguments;                    ///< what formulas name: numbers as they are, tensors as geometry
  std::vector<Value> results;                      ///< geometry of the named results

 private:
  void keep(std::vector<Kept>& kept, const aten::Saved& what, const Value& v);

  std::vector<const aten::Saved*> of_results_;
  std::uint32_t saved_ = 0;
  bool complete_ = false;
};

class FormulaNode final : public Node {
 public:
  /// Collects the edges and keeps what backward needs of the arguments; results follow with `save_results`.
  FormulaNode(Shadow& m, Ref<CallPlan> plan, std::span<const Value> args);
  ~FormulaNode() override;

  std::string_view name() const override;
  Gradients apply(Shadow& m, const Gradients& grads) override;
  void release() override;
  bool portray(Portrait& p) const override;

  void save_results(Shadow& m, const Outputs& outputs);

 private:
  using Held = boost::container::small_vector<Value, 6>;

  Held unpack(Shadow& m) const;
  Outputs differentiate(Shadow& m, const Held& held, const Gradients& grads) const;

  Ref<CallPlan> plan_;
  boost::container::small_vector<SavedVariable, 3> saved_;
};

/// What is known of the calls with one signature.
struct CallPlan {
  CallPlan(const Shadow::Entry& e, std::span<const Value> args, bool grad_enabled);

  std::uint32_t owners = 0;
  bool known = false;  ///< found again by its signature
  Repeatable kernel;
  std::optional<NodePlan> node;  ///< of a call that is recorded for backward
  static void destroy(CallPlan* p) { delete p; }
};

}  // namespace headroom::shadow
