#include "estimator/recover/common_locals.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace headroom::recovery {

namespace {

class Finder {
 public:
  Finder(const Recovery& r, const SlotUses& uses) : r_(r), calls_(r.program.calls), uses_(uses) {}

  CommonLocals run() {
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      const std::string& op = name(i);
      if (op == "aten::embedding") position_bias(i);
      if (op == "aten::scaled_dot_product_attention") position_bias_mask(i);
      if (r_.origins.has_text()) continue;
      if (op == "aten::rsqrt")
        norm(i);
      else if (op == "aten::scaled_dot_product_attention")
        attention(i);
      else if (op == "aten::embedding")
        embedding(i);
      else if (op == "aten::linear")
        t5_projection(i);
      else if (op == "aten::softmax.int")
        eager_attention(i);
      else if (op == "aten::add.Tensor")
        sum(i);
    }
    return std::move(out_);
  }

 private:
  static constexpr int of_argument = -1;  ///< place of a name that an argument had: those go first

  const std::string& name(std::size_t i) const { return r_.program.name_of(calls_[i].op); }
  SlotId tensor(std::size_t call, std::size_t argument) const {
    if (argument >= calls_[call].args.size()) return {};
    const auto* s = std::get_if<SlotId>(&calls_[call].args[argument]);
    return s ? *s : SlotId{};
  }
  std::int32_t maker(SlotId s) const { return s.valid() ? uses_.maker(s) : -1; }
  /// The call with this name that makes `s`; -1: another does.
  std::int32_t made_by(SlotId s, std::string_view op) const {
    const std::int32_t made = maker(s);
    return made >= 0 && name(static_cast<std::size_t>(made)) == op ? made : -1;
  }
  /// The first result of a call; invalid: it has none.
  SlotId result(std::size_t i) const { return calls_[i].outputs.empty() ? SlotId{} : calls_[i].outputs[0]; }
  /// The only call that reads `s`; -1: none or several do.
  std::int32_t only_reader(SlotId s) const {
    return s.valid() && uses_.readers(s).size() == 1 ? uses_.readers(s)[0] : -1;
  }
  bool is(std::int32_t call, std::string_view op) const {
    return call >= 0 && name(static_cast<std::size_t>(call)) == op;
  }
  bool same_module(std::size_t a, std::size_t b) const { return calls_[a].module == calls_[b].module; }
  void keep(SlotId s, std::int32_t until = -1, int place = 0) {
    if (maker(s) < 0) return;
    const CallOrigin& origin = r_.origin(static_cast<std::size_t>(maker(s)));
    if (!origin.local && !origin.temporary) out_.try_emplace(s, CommonLocal{until, place});
  }

  /// T5's stacks return what their last norm makes, or its dropout: "encoder_outputs = self.encoder(…)".
  void stack_output(std::size_t weighted) {
    if (!path(weighted).ends_with(".final_layer_norm")) return;
    const std::int32_t dropout = only_reader(result(weighted));
    keep(result(is(dropout, "aten::dropout") ? static_cast<std::size_t>(dropout) : weighted));
  }

  /// "variance = x.pow(2).mean(-1, keepdim=True); x = x * torch.rsqrt(variance + eps); return weight * x.to(dtype)".
  void norm(std::size_t root) {
    const std::int32_t sum = made_by(tensor(root, 0), "aten::add.Tensor");
    if (sum < 0) return;
    const SlotId variance = tensor(static_cast<std::size_t>(sum), 0);
    const std::int32_t mean = made_by(variance, "aten::mean.dim");
    if (mean < 0 || made_by(tensor(static_cast<std::size_t>(mean), 0), "aten::pow.Tensor_Scalar") < 0) return;
    if (!same_module(static_cast<std::size_t>(mean), root)) return;
    keep(variance);
    const std::int32_t scaled = only_reader(result(root));
    if (!is(scaled, "aten::mul.Tensor")) return;
    const SlotId normal = result(static_cast<std::size_t>(scaled));
    const std::int32_t cast = only_reader(normal);
    // T5 casts for the square alone, "hidden_states.to(torch.float32).pow(2)", and binds what it casts back.
    const std::int32_t square = made_by(tensor(static_cast<std::size_t>(mean), 0), "aten::pow.Tensor_Scalar");
    const std::int32_t up = made_by(tensor(static_cast<std::size_t>(square), 0), "aten::to.dtype");
    const auto is_scaled = [&](SlotId x) {
      return tensor(static_cast<std::size_t>(scaled), 0) == x || tensor(static_cast<std::size_t>(scaled), 1) == x;
    };
    if (up >= 0 && is_scaled(tensor(static_cast<std::size_t>(up), 0)) && is(cast, "aten::to.dtype")) {
      keep(normal, cast);
      if (const std::int32_t weighted = only_reader(result(static_cast<std::size_t>(cast))); weighted >= 0)
        stack_output(static_cast<std::size_t>(weighted));
      keep(result(static_cast<std::size_t>(cast)), -1, of_argument);
    } else {
      keep(normal, -1, of_argument);
    }
  }

  /// "query, key, value = …" of the forward that attends.
  void attention(std::size_t i) {
    for (int a = 0; a < 3; ++a) keep(tensor(i, static_cast<std::size_t>(a)), -1, a);
    // "position_bias = …" of the stack whose layers share it.
    SlotId bias = tensor(i, 3);
    if (const std::int32_t mask = made_by(bias, "aten::where.ScalarOther"); mask >= 0)
      bias = tensor(static_cast<std::size_t>(mask), 1);
    if (is_position_bias(bias)) keep(bias, -1, 3);
  }

  bool is_position_bias(SlotId s) const {
    for (const std::string_view view : {"aten::unsqueeze", "aten::permute"})
      if (const std::int32_t made = made_by(s, view); made >= 0) s = tensor(static_cast<std::size_t>(made), 0);
    const std::int32_t table = made_by(s, "aten::embedding");
    return table >= 0 && path(static_cast<std::size_t>(table)).ends_with(".relative_attention_bias");
  }

  /// SDPA's mask made of a position bias goes when transformers' wrapper returns what it copied.
  void position_bias_mask(std::size_t i) {
    const std::int32_t mask = made_by(tensor(i, 3), "aten::where.ScalarOther");
    if (mask < 0 || r_.origin(static_cast<std::size_t>(mask)).node != r_.origin(i).node) return;
    const std::int32_t turned = only_reader(result(i));
    const std::int32_t copied = turned < 0 ? -1 : only_reader(result(static_cast<std::size_t>(turned)));
    keep(tensor(i, 3), std::max(turned, copied));
  }

  /// The same where the products are written out: what softmax's scores come of, and what its weights multiply.
  void eager_attention(std::size_t softmax) {
    SlotId scores = tensor(softmax, 0);
    while (maker(scores) >= 0 && made_by(scores, "aten::matmul") < 0) {
      const auto i = static_cast<std::size_t>(maker(scores));
      const std::string& op = name(i);
      if (op != "aten::add.Tensor" && op != "aten::mul.Tensor" && op != "aten::div.Tensor" && op != "aten::to.dtype" &&
          op != "aten::add_.Tensor")
        return;
      scores = tensor(i, 0);
    }
    const std::int32_t product = made_by(scores, "aten::matmul");
    if (product < 0) return;
    SlotId weights = result(softmax);
    while (only_reader(weights) >= 0) {
      const auto i = static_cast<std::size_t>(only_reader(weights));
      const std::string& op = name(i);
      if (op == "aten::matmul") {
        keep(tensor(static_cast<std::size_t>(product), 0), -1, 0);
        keep(tensor(static_cast<std::size_t>(product), 1), -1, 1);
        keep(tensor(i, 1), -1, 2);
        return;
      }
      if (op != "aten::dropout" && op != "aten::to.dtype") return;
      weights = result(i);
    }
  }

  /// "inputs_embeds = self.embed_tokens(input_ids)".
  void embedding(std::size_t i) {
    if (!is_embedding_name(path(i))) return;
    // Arguments of the embeddings' forward go first.
    keep(result(i), -1, path(i).ends_with("word_embeddings") ? 0 : 2);
    // "buffered_token_type_ids = torch.gather(…); token_type_ids = buffered_token_type_ids.expand(…)".
    if (const std::int32_t expand = made_by(tensor(i, 1), "aten::expand"); expand >= 0)
      if (const SlotId buffered = tensor(static_cast<std::size_t>(expand), 0); made_by(buffered, "aten::gather") >= 0)
        keep(buffered, -1, 1);
  }

  /// T5's compute_bias, and _relative_position_bucket within it: call i looks the buckets up.
  void position_bias(std::size_t i) {
    if (!path(i).ends_with(".relative_attention_bias")) return;
    if (i == 0 || i + 1 >= calls_.size() || below(i, i - 1) != 1) return;
    std::size_t end = i;
    while (end + 1 < calls_.size() && same_module(end + 1, i - 1) &&
           (name(end + 1) == "aten::permute" || name(end + 1) == "aten::unsqueeze"))
      ++end;
    const auto returns = static_cast<std::int32_t>(end);
    std::size_t from = i - 1;
    while (from > 0 && same_module(from - 1, i - 1) && name(from) != "aten::sub.Tensor") --from;
    if (name(from) != "aten::sub.Tensor") return;
    keep(tensor(from, 1), returns);
    keep(tensor(from, 0), returns);
    keep(result(from), returns);
    for (std::size_t j = from + 1; j + 1 < i; ++j) {
      const std::string& op = name(j);
      const bool negated = is(only_reader(result(j)), "aten::neg");
      if (op == "aten::abs" || op == "aten::neg" || op.starts_with("aten::lt") || (op == "aten::minimum" && !negated))
        keep(result(j), static_cast<std::int32_t>(i) - 1);
    }
    keep(result(i - 1), returns);
  }

  /// T5: "normed_hidden_states = self.layer_norm(hidden_states); attention_output = self.SelfAttention(…);
  /// attention_output = hidden_states + self.dropout(attention_output)".
  void t5_projection(std::size_t i) {
    for (const std::string_view attention : {".SelfAttention", ".EncDecAttention"}) {
      if (path(i).ends_with(std::string(attention) + ".q")) keep(tensor(i, 0));
      if (!path(i).ends_with(std::string(attention) + ".o")) continue;
      std::int32_t sum = only_reader(result(i));
      if (is(sum, "aten::dropout")) sum = only_reader(result(static_cast<std::size_t>(sum)));
      if (is(sum, "aten::add.Tensor")) keep(result(i), sum);
    }
    if (path(i).ends_with(".DenseReluDense.wo")) keep(result(i));
  }

  void sum(std::size_t i) {
    rotation(i);
    const SlotId first = tensor(i, 0), second = tensor(i, 1);
    if (r_.mode.conv_net) return;
    if (const std::int32_t norm = only_reader(result(i)); is(norm, "aten::layer_norm")) {
      // "hidden_states = self.LayerNorm(hidden_states + input_tensor)".
      if (levels_below(first, i) == 1 && levels_below(second, i) == 0 && below(static_cast<std::size_t>(norm), i) == 1)
        keep(first, norm);
      return;
    }
    // "hidden_states = attn_output + residual", and then "residual + feed_forward_hidden_states" too.
    if (levels_below(first, i) > 1 && levels_below(second, i) == 0) {
      keep(first);
      named_branches_ = calls_[i].module;
    } else if (levels_below(second, i) > 1 && levels_below(first, i) == 0 && named_branches_ == calls_[i].module) {
      keep(second);
    }
  }

  std::string_view path(std::size_t i) const { return r_.program.module_path(calls_[i].module); }
  /// How many modules call a is deeper than call b's, within it; 0: it is not.
  int below(std::size_t a, std::size_t b) const {
    const std::string_view inner = path(a), outer = path(b);
    if (inner.size() <= outer.size() || !inner.starts_with(outer)) return 0;
    if (!outer.empty() && inner[outer.size()] != '.') return 0;
    return static_cast<int>(std::ranges::count(inner.substr(outer.size()), '.')) + (outer.empty() ? 1 : 0);
  }
  int levels_below(SlotId s, std::size_t call) const {
    return maker(s) >= 0 ? below(static_cast<std::size_t>(maker(s)), call) : 0;
  }
  /// As transformers calls the tables whose results it names.
  static bool is_embedding_name(std::string_view module) {
    for (const std::string_view known : {"wte", "wpe", "word_embeddings", "position_embeddings",
                                         "token_type_embeddings", "embed_tokens", "embed_positions"})
      if (module == known || (module.ends_with(known) && module[module.size() - known.size() - 1] == '.')) return true;
    return false;
  }

  /// "query, key = apply_rotary_pos_emb(query, key, cos, sin)": the second sum of a module ends the first one's too.
  void rotation(std::size_t i) {
    const SlotId turned = turned_by(i);
    if (!turned.valid()) return;
    const auto call = static_cast<std::int32_t>(i);
    if (before_.valid() && same_module(static_cast<std::size_t>(before_call_), i)) {
      keep(before_, call);
      keep(turned, call);
      before_ = {};
      return;
    }
    before_ = turned;
    before_call_ = call;
  }

  /// x of x * cos + rotate_half(x) * sin, where call i is the sum; invalid: it is another.
  SlotId turned_by(std::size_t i) const {
    const std::int32_t straight = made_by(tensor(i, 0), "aten::mul.Tensor");
    const std::int32_t across = made_by(tensor(i, 1), "aten::mul.Tensor");
    if (straight < 0 || across < 0) return {};
    if (made_by(tensor(static_cast<std::size_t>(across), 0), "aten::cat") < 0) return {};
    const SlotId x = tensor(static_cast<std::size_t>(straight), 0);
    if (!x.valid()) return {};
    for (const std::int32_t reader : uses_.readers(x))
      if (name(static_cast<std::size_t>(reader)) == "aten::slice.Tensor") return x;
    return {};
  }

  const Recovery& r_;
  const std::vector<Call>& calls_;
  const SlotUses& uses_;
  ModuleId named_branches_;  ///< adds what its branches return under names
  SlotId before_;            ///< turned first in its module
  std::int32_t before_call_ = 0;
  CommonLocals out_;
};

}  // namespace

CommonLocals find_common_locals(const Recovery& r, const SlotUses& uses) { return Finder(r, uses).run(); }

}  // namespace headroom::recovery
