// Pools.
#include <algorithm>
#include <array>

#include "estimator/recover/operators/operators.h"
#include "estimator/recover/recovery.h"

namespace headroom::recovery {

namespace {

struct Window {
  Dims kernel, stride, pads, dilation;
  bool ceil = false;
  SlotId x;
  std::string kind;
};

/// The node's window; pads that differ at the two ends become a call of their own.
Window window_of(Recovery& r, double padded_with) {
  const Node& node = r.onnx();
  const std::size_t rank = r.dims(r.in(0)).size() - 2;
  Window w;
  w.kind = std::to_string(rank) + "d";
  w.x = r.tensor(0);
  w.ceil = node.integer("ceil_mode", 0) != 0;
  const auto kernel = node.integers("kernel_shape"), stride = node.integers("strides"), pads = node.integers("pads"),
             dilation = node.integers("dilations");
  const bool same = node.text("auto_pad", "NOTSET").starts_with("SAME");
  Dims after;
  for (std::size_t i = 0; i < rank; ++i) {
    w.kernel.push_back(i < kernel.size() ? kernel[i] : 1);
    w.stride.push_back(i < stride.size() ? stride[i] : 1);
    w.dilation.push_back(i < dilation.size() ? dilation[i] : 1);
    std::int64_t before = pads.size() == 2 * rank ? pads[i] : 0, behind = pads.size() == 2 * rank ? pads[i + rank] : 0;
    if (same) {
      const std::int64_t span = (w.kernel[i] - 1) * w.dilation[i] + 1;
      const std::int64_t total =
          std::max<std::int64_t>(0, (r.out_dims()[i + 2] - 1) * w.stride[i] + span - r.dims(r.in(0))[i + 2]);
      before = total / 2;
      behind = total - before;
    }
    w.pads.push_back(before);
    after.push_back(behind);
  }
  const bool too_wide = std::any_of(w.pads.begin(), w.pads.end(), [&](const auto& p) {
    return 2 * p > w.kernel[static_cast<std::size_t>(&p - w.pads.data())];
  });
  if (w.pads != after || too_wide) {
    Dims around;
    for (std::size_t i = rank; i-- > 0;) {
      around.push_back(w.pads[i]);
      around.push_back(after[i]);
    }
    w.x = r.call("aten::constant_pad_nd", {w.x, around, padded_with}, std::string(r.graph.name(r.out())) + ".padded");
    w.pads.assign(rank, 0);
  }
  return w;
}

void max_pool(Recovery& r) {
  const Window w = window_of(r, -1e30);
  const bool indices = r.out(1).valid() && !r.graph.readers(r.out(1)).empty();
  if (indices) {
    r.emit_many("aten::max_pool" + w.kind + "_with_indices", {w.x, w.kernel, w.stride, w.pads, w.dilation, w.ceil},
                {r.out(0), r.out(1)});
  } else {
    r.emit("aten::max_pool" + w.kind, {w.x, w.kernel, w.stride, w.pads, w.dilation, w.ceil});
  }
}

void average_pool(Recovery& r) {
  const Window w = window_of(r, 0.0);
  r.emit("aten::avg_pool" + w.kind,
         {w.x, w.kernel, w.stride, w.pads, w.ceil, r.onnx().integer("count_include_pad", 0) != 0});
}

void global_average_pool(Recovery& r) {
  const std::size_t rank = r.dims(r.in(0)).size() - 2;
  r.emit("aten::adaptive_avg_pool" + std::to_string(rank) + "d", {r.tensor(0), Dims(rank, 1)});
}

void global_max_pool(Recovery& r) {
  const std::size_t rank = r.dims(r.in(0)).size() - 2;
  r.emit_many("aten::adaptive_max_pool" + std::to_string(rank) + "d", {r.tensor(0), Dims(rank, 1)},
              {r.out(), ValueId{}});
}

constexpr std::array list{
    OperatorHandler{"MaxPool", max_pool},
    OperatorHandler{"AveragePool", average_pool},
    OperatorHandler{"GlobalAveragePool", global_average_pool},
    OperatorHandler{"GlobalMaxPool", global_max_pool},
};

}  // namespace

OperatorFamily pooling_operators() { return list; }

}  // namespace headroom::recovery
