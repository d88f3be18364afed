#include "estimator/recover/in_place.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "estimator/recover/in_place_text.h"
#include "estimator/recover/line_statements.h"
#include "estimator/recover/statement.h"

namespace headroom::recovery {

namespace {

constexpr auto activations = std::to_array<std::string_view>(
    {"aten::relu", "aten::leaky_relu", "aten::hardswish", "aten::silu", "aten::hardtanh", "aten::elu", "aten::selu"});

constexpr std::string_view prefix = "aten::";

/// Operators whose methods of the same name with "_" work in place.
constexpr auto methods = std::to_array<std::string_view>({"abs",         "add",         "addcdiv",
                                                          "addcmul",     "bitwise_and", "bitwise_not",
                                                          "bitwise_or",  "celu",        "clamp",
                                                          "clamp_max",   "clamp_min",   "copysign",
                                                          "cos",         "div",         "elu",
                                                          "erf",         "exp",         "expm1",
                                                          "fill",        "floor",       "floor_divide",
                                                          "fmod",        "hardsigmoid", "hardswish",
                                                          "hardtanh",    "index_add",   "index_copy",
                                                          "index_fill",  "index_put",   "leaky_relu",
                                                          "lerp",        "log",         "log1p",
                                                          "logical_and", "logical_not", "logical_or",
                                                          "logit",       "masked_fill", "masked_scatter",
                                                          "mish",        "mul",         "nan_to_num",
                                                          "neg",         "pow",         "reciprocal",
                                                          "relu",        "remainder",   "round",
                                                          "rsqrt",       "scatter",     "scatter_add",
                                                          "selu",        "sigmoid",     "sign",
                                                          "silu",        "sin",         "softplus",
                                                          "sqrt",        "square",      "sub",
                                                          "tan",         "tanh",        "threshold",
                                                          "tril",        "triu",        "trunc",
                                                          "xlogy"});

bool contains(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

class InPlace {
 public:
  InPlace(Recovery& r, const SlotUses& uses) : r_(r), program_(r.program), uses_(uses) {
    is_result_.assign(program_.slot_count(), false);
    for (const ProgramOutput& o : program_.outputs)
      if (o.slot.valid()) is_result_[o.slot.at()] = true;
  }

  void run() {
    for (std::size_t i = 0; i < program_.calls.size(); ++i) {
      const std::string_view op = program_.name_of(program_.calls[i].op);
      follow_line(i, op);
      if (method(i, op)) continue;
      if (std::find(activations.begin(), activations.end(), op) != activations.end()) {
        if (!activation(i)) continue;
        // Only these keep their input as well where they are not in place.
        if (op == "aten::leaky_relu" || op == "aten::elu") {
          ++assumed_;
          bound_ += bytes_of(DType::f32, r_.graph.value(r_.graph.output(r_.origin(i).node)).count());
        }
        rename(i, op);
      } else if (op == "aten::add.Tensor" || op == "aten::mul.Tensor" || op == "aten::sub.Tensor" ||
                 op == "aten::div.Tensor") {
        if (arithmetic(i, op)) rename(i, op);
      } else if (writes_into_zeros(i, op)) {
        rename(i, op);
      }
    }
    if (assumed_ && r_.options.training)
      r_.diagnose("inplace-assumed", Severity::info,
                  std::to_string(assumed_) + " activations are taken to work in place, as in most convolutional nets",
                  bound_);
  }

 private:
  /// The statement of call i's line that the call belongs to.
  void follow_line(std::size_t i, std::string_view op) {
    const NodeIndex n = r_.origin(i).node;
    const std::string_view before = statement_;
    statement_ = r_.origins.source_line(n);
    if (contains(statement_, ";")) {
      const auto [line, fresh] = lines_.try_emplace({r_.origins.scope_number(n), statement_}, statement_);
      line->second.follow(op);
      statement_ = line->second.statement();
    }
    if (statement_ != before && !made_in_statement_.empty()) made_in_statement_.clear();
  }

  /// "x.masked_fill_(mask, 0)", "F.mish(x, inplace=True)".
  bool method(std::size_t i, std::string_view op) {
    if (statement_.empty() || !op.starts_with(prefix)) return false;
    const std::size_t dot = std::min(op.find('.'), op.size());
    const std::string_view name = op.substr(prefix.size(), dot - prefix.size());
    const std::vector<bool> spelled = spelled_calls(statement_, name);
    if (spelled.empty() || std::find(methods.begin(), methods.end(), name) == methods.end()) return false;
    const std::size_t turn = made_in_statement_[std::string(name)]++;
    if (!spelled[turn % spelled.size()]) return false;
    const SlotId x = first_tensor(i);
    if (!x.valid() || uses_.maker(x) < 0 || r_.parameters.is_parameter(x)) return false;
    // "x.clone().mul_(y)": the export has no clone, its product is both.
    if (contains(statement_, "clone()") || uses_.readers(x).back() != static_cast<std::int32_t>(i)) return false;
    rename(i, op);
    return true;
  }

  /// "torch.zeros(…).scatter_(1, index, 1)", as files without lines hide it: nobody scatters into a copy of zeros.
  bool writes_into_zeros(std::size_t i, std::string_view op) const {
    if (r_.origins.has_text() || !(op.starts_with("aten::scatter") || op.starts_with("aten::index_add"))) return false;
    const SlotId x = first_tensor(i);
    if (!x.valid() || uses_.maker(x) < 0 || !has_one_reader(x)) return false;
    const std::string_view made = maker(x);
    return made.starts_with("aten::zeros") || made.starts_with("aten::full") || made.starts_with("aten::new_zeros") ||
           made.starts_with("aten::scatter_.") || made == "aten::scatter_add_" || made == "aten::index_add_";
  }

  SlotId first_tensor(std::size_t i) const {
    const auto& args = program_.calls[i].args;
    const auto* s = args.empty() ? nullptr : std::get_if<SlotId>(&args[0]);
    return s ? *s : SlotId{};
  }
  std::string_view maker(SlotId s) const {
    return uses_.maker(s) < 0 ? std::string_view{}
                              : program_.name_of(program_.calls[static_cast<std::size_t>(uses_.maker(s))].op);
  }
  /// One call, and no caller of the model.
  bool has_one_reader(SlotId s) const { return uses_.readers(s).size() == 1 && !is_result_[s.at()]; }
  /// "aten::mul.Tensor" becomes "aten::mul_.Tensor".
  void rename(std::size_t i, std::string_view op) {
    const std::size_t dot = std::min(op.find('.'), op.size());
    program_.calls[i].op = r_.builder.op(std::string(op.substr(0, dot)) + "_" + std::string(op.substr(dot)));
  }

  bool activation(std::size_t i) const {
    const SlotId x = first_tensor(i);
    // In place on an input or a parameter, or beside another reader, would have changed what the file computes.
    if (!x.valid() || uses_.maker(x) < 0 || !has_one_reader(x)) return false;
    const NodeIndex n = r_.origin(i).node;
    const std::string_view made = maker(x);
    const bool after_norm = made == "aten::batch_norm" || made == "aten::instance_norm" || made == "aten::group_norm";
    const bool after_conv = made.starts_with("aten::conv");
    const bool after_sum = made.starts_with("aten::add") || made == "aten::linear" || made == "aten::addmm";
    if (is_position_bias_mlp(n)) return after_sum;
    if (r_.origins.has_text()) {
      const std::string_view classes = r_.origins.class_hierarchy(n), line = r_.origins.source_line(n);
      const bool module = contains(r_.origins.module_class(n), "activation");
      if (!module && !line.empty() && !contains(line, "self.act") && !contains(r_.origins.module_class(n), "torch.nn"))
        return contains(line, "inplace=True") || contains(line, "relu_(");
      if (contains(classes, "SqueezeExcitation") || contains(classes, "transformers.") ||
          contains(classes, "diffusers."))
        return false;
      if (contains(classes, "torchvision.models")) return after_norm || after_conv || after_sum;
    } else if (r_.origins.module(n).ends_with("activation") || r_.origins.module(n).ends_with("act_fn")) {
      return false;  // so transformers and torchvision's squeeze and excitation call those that are not
    }
    // Where the guess costs memory it is made for modules behind a convolution or its norm only. F.leaky_relu in the
    // parent's forward is none: a module of its own would have a scope beside its input's.
    const std::string_view op = program_.name_of(program_.calls[i].op);
    if (op == "aten::leaky_relu" || op == "aten::elu") {
      const NodeIndex maker_node = r_.origin(static_cast<std::size_t>(uses_.maker(x))).node;
      const bool as_function = !r_.origins.has_text() && r_.mode.torch_names && r_.origins.inside(maker_node, n);
      return (after_norm || after_conv) && !as_function;
    }
    return after_norm || after_conv || (r_.mode.conv_net && after_sum);
  }

  /// The perceptron of Swin V2's continuous position bias, in place in all libraries.
  bool is_position_bias_mlp(NodeIndex n) const {
    const std::string_view path = r_.origins.module(n);
    return contains(path, "cpb_mlp") || contains(path, "continuous_position_bias_mlp");
  }

  bool arithmetic(std::size_t i, std::string_view op) {
    const Call& call = program_.calls[i];
    const SlotId x = first_tensor(i);
    if (!x.valid() || uses_.maker(x) < 0 || r_.parameters.is_parameter(x)) return false;
    const NodeIndex n = r_.origin(i).node;
    if (!r_.has_result_dims_of_first(n)) return false;
    if (r_.augmented.contains(n)) return true;
    const char sign = op == "aten::add.Tensor"   ? '+'
                      : op == "aten::mul.Tensor" ? '*'
                      : op == "aten::sub.Tensor" ? '-'
                                                 : '/';
    if (r_.origins.has_text()) {
      const std::string_view line = r_.origins.source_line(n);
      if (parse_statement(statement_).augmented != sign) return false;
      if (statement_.size() != line.size()) return true;
      // Of several calls of the line the last is the augmented one.
      if (i + 1 < program_.calls.size()) {
        const NodeIndex next = r_.origin(i + 1).node;
        bool reads = false;
        for_each_read(program_.calls[i + 1], [&](SlotId s) { reads = reads || s == call.outputs[0]; });
        if (reads && r_.origins.source_line(next) == line && r_.origins.same_scope(n, next)) return false;
      }
      return true;
    }
    if (sign != '+' || !has_one_reader(x)) return false;
    const std::string_view made = maker(x);
    return (r_.mode.conv_net && (made == "aten::batch_norm" || made == "aten::add_.Tensor")) ||
           (made == "aten::mul.Tensor" && is_residual_branch(static_cast<std::size_t>(uses_.maker(x))));
  }

  /// The end of a branch as torchvision's blocks have it, who go on with `result += input`: stochastic depth, or the
  /// layer's scale where that drops nothing.
  bool is_residual_branch(std::size_t product) const {
    const SlotId scale = first_tensor(product);
    return r_.origins.module(r_.origin(product).node).ends_with(".stochastic_depth") ||
           (r_.parameters.is_parameter(scale) && r_.parameters.at(scale).name.ends_with(".layer_scale"));
  }

  Recovery& r_;
  Program& program_;
  const SlotUses& uses_;
  std::vector<bool> is_result_;
  std::map<std::pair<std::size_t, std::string_view>, LineFollower> lines_;  ///< of several statements, by scope
  std::string_view statement_;                                              ///< of the call in hand
  std::map<std::string, std::size_t, std::less<>> made_in_statement_;       ///< calls so far, by operator
  std::size_t assumed_ = 0;
  Bytes bound_;
};

}  // namespace

void find_in_place_calls(Recovery& r, const SlotUses& uses) { InPlace(r, uses).run(); }

}  // namespace headroom::recovery
