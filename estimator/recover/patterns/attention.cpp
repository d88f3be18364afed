// Scaled-dot-product attention as its decomposition: q·√s, kᵀ·√s, product, mask, softmax, [safe softmax], [dropout],
// product.
#include <array>

#include "estimator/recover/attention.h"
#include "estimator/recover/patterns/patterns.h"

namespace headroom::recovery {

namespace {

void find_attention(Recovery& r, NodeIndex softmax) {
  const GraphView& g = r.graph;
  const auto product = score_product(g, softmax);
  // One-sided scaling is attention written in Python.
  if (!product || !product->scaled_both) return;
  ValueId probabilities = g.output(softmax);
  for (const NodeIndex reader : g.readers(probabilities))
    if (g.is(reader, "Where")) {
      probabilities = g.output(reader);
      break;
    }
  auto readers = g.readers(probabilities);
  if (readers.empty()) return;
  Attention a;
  NodeIndex last = readers[0];
  if (g.is(last, "Dropout")) {
    a.dropout =
        g.node(last).attribute("ratio") ? g.node(last).real("ratio", 0.1) : g.number(g.input(last, 1)).value_or(0.1);
    probabilities = g.output(last);
    readers = g.readers(probabilities);
    if (readers.empty()) return;
    last = readers[0];
  }
  if (!g.is(last, "MatMul") || g.input(last, 0) != probabilities) return;
  a.query = product->query;
  a.key = product->key;
  a.key_is_transposed = product->key_is_transposed;
  a.key_order = product->key_order;
  a.value = g.input(last, 1);
  a.scale = product->scale;
  a.mask = mask_argument(r, product->mask);
  find_grouped_heads(r, a);
  const ValueId result = g.output(last);
  r.claim({last, reads_of(a), [&r, a, result]() mutable {
             if (r.restores_dropouts_in_layers() && a.dropout == 0) a.dropout = 0.1;
             call_attention(r, a, result);
           }});
}

constexpr std::array list{Pattern{"Softmax", find_attention}};

}  // namespace

PatternFamily attention_patterns() { return list; }

}  // namespace headroom::recovery
