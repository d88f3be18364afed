#include "estimator/recover/removed_dropouts.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

#include "estimator/base/text.h"
#include "estimator/recover/dropout_families.h"

namespace headroom::recovery {

namespace {

/// Modules whose result these families drop out: BERT's, DistilBERT, GPT-2, T5, BART's, SqueezeBERT, Funnel, XLNet,
/// wav2vec 2.0's.
constexpr std::array dropped_modules = {"attention.output.dense",
                                        "output.dense",
                                        "embeddings.LayerNorm",
                                        "layernorm_embedding",
                                        "ffn.lin2",
                                        "attn.c_proj",
                                        "mlp.c_proj",
                                        "SelfAttention.o",
                                        "EncDecAttention.o",
                                        "DenseReluDense.wo",
                                        "DenseReluDense.act",
                                        "self_attn.out_proj",
                                        "encoder_attn.out_proj",
                                        "attention.attn.o",
                                        "post_attention.conv1d",
                                        "output.conv1d",
                                        "attention.post_proj",
                                        "ffn.linear_2",
                                        "embeddings.layer_norm",
                                        "ff.layer_2",
                                        "attention.out_proj",
                                        "feed_forward.intermediate_act_fn",
                                        "feed_forward.output_dense",
                                        "feature_projection.projection"};

bool ends_with_module(std::string_view path, std::string_view tail) {
  return path == tail ||
         (path.size() > tail.size() && path.ends_with(tail) && path[path.size() - tail.size() - 1] == '.');
}

/// Layers of BART's kind hold fc2 themselves and drop its result out too, those of wav2vec 2.0's kind have a module for
/// it. CLIP's kind has an mlp, GPT-Neo other names, and no dropout.
bool is_of_bart_or_wav2vec(const std::set<std::string_view>& paths, std::string_view projection) {
  const std::string layer(projection.substr(0, projection.rfind('.', projection.rfind('.') - 1)));
  return paths.contains(layer + ".fc2") || paths.contains(layer + ".feed_forward.output_dense");
}

bool is_dropped(const std::set<std::string_view>& paths, std::string_view path, bool t5) {
  for (const std::string_view tail : dropped_modules)
    if (ends_with_module(path, tail)) return !tail.ends_with(".out_proj") || is_of_bart_or_wav2vec(paths, path);
  if (t5) return ends_with_module(path, "final_layer_norm") || ends_with_module(path, "embed_tokens");
  // layers.N.fc2, not that of a module in the layer
  if (!ends_with_module(path, "fc2") || path.size() < 4) return false;
  const std::string_view layer = path.substr(0, path.size() - 4);
  const std::size_t dot = layer.rfind('.');
  return dot != std::string_view::npos && parse_int(layer.substr(dot + 1)) && layer.substr(0, dot).ends_with("layers");
}

/// Values that nn.TransformerEncoderLayer and its decoder drop out: what attention returns, what linear2 reads and
/// returns.
std::vector<ValueId> in_torch_layers(const Recovery& r) {
  const GraphView& g = r.graph;
  std::unordered_map<std::string_view, std::pair<NodeIndex, NodeIndex>> nodes_of;  ///< first and last of a module
  for (std::size_t i = 0; i < g.size(); ++i) {
    const auto n = static_cast<NodeIndex>(i);
    const ValueId v = g.output(n);
    if (!v.valid() || r.is_host(v) || g.is_stored(v) || !is_float(g.value(v).dtype)) continue;
    const auto inputs = g.inputs(n);
    if (std::ranges::all_of(inputs, [&](ValueId input) { return !input.valid() || g.is_stored(input); })) continue;
    const auto [it, fresh] = nodes_of.try_emplace(r.origins.module(n), n, n);
    it->second.second = n;
  }
  std::vector<ValueId> out;
  for (const auto& [path, range] : nodes_of) {
    if (!ends_with_module(path, "linear2")) continue;
    const std::string layer(path.substr(0, path.size() - 7));
    const auto attention = nodes_of.find(layer + "self_attn"), cross = nodes_of.find(layer + "multihead_attn");
    if (attention == nodes_of.end() || !nodes_of.contains(layer + "linear1")) continue;
    out.push_back(g.output(attention->second.second));
    if (cross != nodes_of.end()) out.push_back(g.output(cross->second.second));
    out.push_back(g.input(range.first, 0));
    out.push_back(g.output(range.second));
  }
  return out;
}

/// x + pe[:x.size(0)] of the positional encoding that goes with torch.nn's transformers: it drops out the sum.
void add_encoded_positions(const Recovery& r, std::vector<ValueId>& out) {
  const GraphView& g = r.graph;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const auto n = static_cast<NodeIndex>(i);
    if (!g.is(n, "Add")) continue;
    for (ValueId table : g.inputs(n)) {
      while (g.is(g.producer(table), "Slice") || g.is(g.producer(table), "Gather"))
        table = g.input(g.producer(table), 0);
      if (g.initializer(table) && ends_with_module(g.name(table), "pe")) out.push_back(g.output(n));
    }
  }
}

/// What SegFormer's head drops out before it classifies.
std::vector<ValueId> before_pixel_classifiers(const Recovery& r) {
  const GraphView& g = r.graph;
  std::vector<ValueId> out;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const auto n = static_cast<NodeIndex>(i);
    if (g.is(n, "Conv") && ends_with_module(r.origins.module(n), "decode_head.classifier"))
      out.push_back(g.input(n, 0));
  }
  return out;
}

struct LastOfScope {
  NodeIndex node;
  std::string_view path;
};

/// Results of modules after which a Sequential's indices have a gap ("n.1", "n.3").
std::vector<ValueId> before_index_gaps(const Recovery& r) {
  struct Child {
    std::int64_t index;
    NodeIndex last;
  };
  const GraphView& g = r.graph;
  const auto is_folded = [&](NodeIndex n) {
    return g.is(n, "Conv") && g.name(g.input(n, 1)).starts_with("onnx::Conv");
  };
  std::unordered_map<std::string_view, std::vector<Child>> children;
  for (std::size_t i = 0; i < r.graph.size(); ++i) {
    const auto n = static_cast<NodeIndex>(i);
    const ValueId v = r.graph.output(n);
    if (!v.valid() || r.is_host(v) || !r.graph.value(v).is_tensor()) continue;
    const std::string_view path = r.origins.module(n);
    const std::size_t dot = path.rfind('.');
    const auto index = parse_int(dot == std::string_view::npos ? path : path.substr(dot + 1));
    if (!index) continue;
    children[dot == std::string_view::npos ? std::string_view{} : path.substr(0, dot)].push_back({*index, n});
  }
  std::vector<ValueId> gaps;
  for (auto& [module, list] : children) {
    std::stable_sort(list.begin(), list.end(), [](const Child& a, const Child& b) { return a.index < b.index; });
    for (std::size_t i = 1; i < list.size(); ++i) {
      const std::int64_t step = list[i].index - list[i - 1].index;
      // The place behind a convolution is that of its folded batch norm.
      if (step < 2 || (step == 2 && is_folded(list[i - 1].last))) continue;
      const ValueId v = g.output(list[i - 1].last);
      const auto readers = g.readers(v);
      const bool one_after_another = std::any_of(readers.begin(), readers.end(), [&](NodeIndex reader) {
        return r.origins.same_scope(reader, list[i].last) || r.origins.inside(reader, list[i].last);
      });
      if (one_after_another) gaps.push_back(v);
    }
  }
  return gaps;
}

/// Where a transformer of an unknown family may have dropouts besides those restored: on residual branches and on the
/// sum of embeddings (a mask), on attention's probabilities and on what a layer's second linear reads (a mask and the
/// result, which is saved instead).
void say_unknown(Recovery& r) {
  const GraphView& g = r.graph;
  bool folded = false, normalised = false;
  Bytes masks, results;
  std::size_t places = 0;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const auto n = static_cast<NodeIndex>(i);
    const ValueId v = g.output(n);
    if (!v.valid() || r.is_host(v) || !g.value(v).is_tensor() || !is_float(g.value(v).dtype)) continue;
    const auto is_sum_of_branches = [&] {
      return g.is(n, "Add") && g.dims(v).size() == 3 && !g.is_stored(g.input(n, 0)) && !g.is_stored(g.input(n, 1)) &&
             !g.is(g.producer(g.input(n, 0)), "MatMul") && !g.is(g.producer(g.input(n, 1)), "MatMul");
    };
    normalised = normalised || g.is(n, "LayerNormalization");
    ValueId dropped;
    if ((g.is(n, "MatMul") || g.is(n, "Gemm")) && g.is_weight(g.input(n, 1), 2)) {
      folded = folded || g.name(g.input(n, 1)).starts_with("onnx::MatMul");
      const std::string_view op = g.producer_op(g.input(n, 0));
      if (op == "Mul" || op == "Relu") dropped = g.input(n, 0);
    } else if (g.is(n, "Softmax") && r.is_free(n)) {
      dropped = v;
    } else if (is_sum_of_branches()) {
      masks += Bytes(g.value(v).count());
      ++places;
    }
    if (!dropped.valid() || r.restores(dropped)) continue;
    masks += Bytes(g.value(dropped).count());
    results += bytes_of(DType::f32, g.value(dropped).count());
    ++places;
  }
  if (folded && normalised && places)
    r.diagnose("dropout-unknown", Severity::warning,
               "an inference export holds no dropout; modules of these names are not known, " + std::to_string(places) +
                   " places may have one: export in training mode to have them counted",
               masks + results);
}

/// torchvision's vision transformer, Swin transformer and MaxViT, and the transformers of diffusers.
bool drops_nothing_by_default(std::string_view path) {
  return path.find("encoder_layer_") != std::string_view::npos ||
         path.find("layers.window_attention") != std::string_view::npos ||
         path.find(".ff.net.") != std::string_view::npos || (path.starts_with("features.") && path.ends_with(".attn"));
}

/// The probabilities are multiplied with values.
bool weighs(const GraphView& g, NodeIndex softmax) {
  return std::ranges::any_of(g.readers(g.output(softmax)), [&](NodeIndex n) { return g.is(n, "MatMul"); });
}

}  // namespace

void plan_dropouts_by_name(Recovery& r) {
  const GraphView& g = r.graph;
  if (r.origins.has_text() || r.mode.exported_training || !r.options.training || !r.mode.torch_names) return;
  bool t5 = false, learned_positions = false, vision = false, no_dropout = false;
  std::set<std::string_view> paths;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const auto n = static_cast<NodeIndex>(i);
    const std::string_view path = r.origins.module(n);
    paths.insert(path);
    t5 = t5 || path.find("SelfAttention") != std::string_view::npos;
    learned_positions = learned_positions || ends_with_module(path, "wpe");
    // Convolutions over sequences are those of speech and of SqueezeBERT.
    vision = vision || (g.is(n, "Conv") && g.dims(g.input(n, 1)).size() > 3);
    no_dropout = no_dropout || path_has_no_dropout(path);
  }
  // Vision transformers of these names have a dropout probability of zero by default.
  std::vector<LastOfScope> places;
  if (!vision && !no_dropout) {
    std::unordered_map<std::string_view, NodeIndex> last;
    bool embedded = false;
    for (std::size_t i = 0; i < g.size(); ++i) {
      const auto n = static_cast<NodeIndex>(i);
      const std::string_view path = r.origins.module(n);
      if (g.is(n, "Constant") || !g.output(n).valid() || r.is_host(g.output(n))) continue;
      if (is_dropped(paths, path, t5)) last[path] = n;
      if (learned_positions && !embedded && g.is(n, "Add") && is_float(g.value(g.output(n)).dtype) &&
          ends_with_module(path, "transformer")) {
        embedded = true;
        places.push_back({n, path});
      }
    }
    for (const auto& [path, n] : last) places.push_back({n, path});
  }
  const std::vector<ValueId> gaps = before_index_gaps(r);
  const auto bytes_at = [&](ValueId v) { return bytes_of(DType::f32, g.value(v).count()) + Bytes(g.value(v).count()); };
  Bytes bound;
  // In a Sequential only a dropout or an identity leaves no node; transformers of these libraries drop nothing.
  const bool drops_at_gaps = !vision || r.mode.conv_net || !std::ranges::any_of(paths, drops_nothing_by_default);
  for (const ValueId v : gaps) bound += bytes_at(v);
  if (!gaps.empty() && !drops_at_gaps)
    r.diagnose("dropout-unknown", Severity::warning,
               std::to_string(gaps.size()) +
                   " gaps in the numbering of sequential modules may be dropouts that the inference "
                   "export removed; export in training mode to have them counted",
               bound);
  if (!drops_at_gaps) bound = Bytes();
  std::size_t elsewhere = drops_at_gaps ? gaps.size() : 0;
  for (std::size_t i = 0; i < elsewhere; ++i) r.restore_dropout(gaps[i], {}, 1);
  const auto restore = [&](ValueId v, bool in_layers) {
    r.restore_dropout(v, {}, 1, in_layers);
    bound += bytes_at(v);
    ++elsewhere;
  };
  for (const ValueId v : before_pixel_classifiers(r)) restore(v, false);
  if (auto of_layers = in_torch_layers(r); !of_layers.empty()) {
    add_encoded_positions(r, of_layers);
    for (const ValueId v : of_layers) restore(v, true);
  }
  if (places.empty() && elsewhere == 0) {
    if (gaps.empty() && !vision && !no_dropout) say_unknown(r);
    return;
  }
  // Layers that drop out elsewhere drop out what attention weighs with.
  const bool known = !places.empty();
  const bool in_layers = known || (drops_at_gaps && !gaps.empty());
  for (std::size_t i = 0; i < g.size() && in_layers; ++i) {
    const auto n = static_cast<NodeIndex>(i);
    if (!g.is(n, "Softmax") || !r.is_free(n)) continue;
    if (known || weighs(g, n)) places.push_back({n, r.origins.module(n)});
  }
  for (const LastOfScope& p : places) {
    r.restore_dropout(g.output(p.node), {}, 1);
    bound += bytes_at(g.output(p.node));
  }
  r.diagnose("dropout-assumed", Severity::warning,
             "an inference export holds no dropout; " + std::to_string(places.size() + elsewhere) +
                 " are restored where modules of these names, layers of torch.nn or gaps in a Sequential have them",
             bound);
  if (!known && !no_dropout) say_unknown(r);
}

}  // namespace headroom::recovery
