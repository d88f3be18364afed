// Scaled-dot-product attention: what eager passes to it. The mask in the file is often not the mask of the run
// (transformers drops causal masks when it does not trace), and repeated keys mean enable_gqa.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/recover/recovery.h"

namespace headroom::recovery {

/// What a mask is made of, walked back through the graph.
struct MaskOrigin {
  bool learned = false;               ///< a floating-point parameter of rank two or more
  bool causal = false;                ///< a comparison of two ranges of positions, or a triangle
  bool window = false;                ///< `>` of two ranges of positions
  std::optional<std::int64_t> reach;  ///< of the window: how far back a query sees
  bool comparison = false;            ///< another comparison of two tensors, or a constant tensor of a shape
  bool activation = false;            ///< results of layers
  bool constant_fill = false;
  bool distances = false;       ///< a product of two tensors of positions and slopes (ALiBi): a bias, whatever masks it
  std::vector<ValueId> inputs;  ///< graph inputs
};

MaskOrigin mask_origin(const GraphView& graph, ValueId mask);

/// The node that makes `v`, or what `v` is a cast of.
NodeIndex through_casts(const GraphView& graph, ValueId v);

/// Decides what eager passes for `mask`; notes what becomes of the mask's own nodes (replaced conditions, dropped
/// expands), and that the packed-sequence test of transformers runs when a causal mask was dropped.
MaskArgument mask_argument(Recovery& r, ValueId mask);

/// One attention call, decided.
struct Attention {
  ValueId query, key, value;
  bool key_is_transposed = false;  ///< the graph holds kᵀ only; the call needs k
  Dims key_order;                  ///< not empty: k is `key` permuted so
  MaskArgument mask;
  double dropout = 0;
  bool causal = false;
  std::optional<double> scale;
  bool grouped = false;  ///< enable_gqa=True: fewer heads in key and value
};

/// Skips the repetition of key and value heads when no mask is passed (`enable_gqa`).
void find_grouped_heads(Recovery& r, Attention& attention);

/// The values an attention call reads.
std::vector<ValueId> reads_of(const Attention& attention);
void call_attention(Recovery& r, const Attention& attention, ValueId result);

/// What softmax(q·kᵀ)·v looks like as operators, as far as one looks back from the Softmax.
struct ScoreProduct {
  ValueId query, key;  ///< before the scale
  bool key_is_transposed = true;
  Dims key_order;
  ValueId mask;
  std::optional<double> scale;
  bool scaled_both = false;
};
std::optional<ScoreProduct> score_product(const GraphView& graph, NodeIndex softmax);

}  // namespace headroom::recovery
