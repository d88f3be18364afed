#include "estimator/recover/ties.h"

#include <algorithm>
#include <cstring>

namespace headroom::recovery {

namespace {

constexpr std::int64_t compared_elements = 64;

/// `count` elements of a matrix from `first` on, `stride` apart; empty when the file has no bytes.
std::vector<std::byte> elements(const Model& model, const TensorData& t, std::int64_t first, std::int64_t stride,
                                std::int64_t count) {
  const std::int64_t size = bits_of(t.dtype) / 8;
  if (stride == 1) return weight_bytes(model, t, first * size, count * size);
  std::vector<std::byte> out;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto one = weight_bytes(model, t, (first + i * stride) * size, size);
    if (one.empty()) return {};
    out.insert(out.end(), one.begin(), one.end());
  }
  return out;
}

enum class Same { yes, no, unknown };

/// Row r of the [V, D] embedding against column r of the [D, V] matrix, for two rows.
Same same_weights(const Model& model, const TensorData& embedding, const TensorData& matrix, bool transposed) {
  const std::int64_t rows = embedding.dims[0], columns = embedding.dims[1];
  const std::int64_t count = std::min(columns, compared_elements);
  for (const std::int64_t row : {std::int64_t{0}, rows / 2}) {
    const auto a = elements(model, embedding, row * columns, 1, count);
    const auto b =
        transposed ? elements(model, matrix, row, rows, count) : elements(model, matrix, row * columns, 1, count);
    if (a.empty() || b.empty()) return Same::unknown;
    if (a != b) return Same::no;
    // A stretch of equal bytes (all zeros) proves nothing.
    if (std::all_of(a.begin(), a.end(), [&](std::byte x) { return x == a[0]; })) return Same::unknown;
  }
  return Same::yes;
}

/// Models with several embeddings of one width (positions, segments: BERT, GPT-2) tie their heads, those with one
/// (rotary positions) do not, unless the name is that of a family that does.
bool usually_tied(const GraphView& g, const std::vector<ValueId>& embeddings, ValueId table) {
  const auto same_width =
      std::count_if(embeddings.begin(), embeddings.end(), [&](ValueId e) { return g.dims(e)[1] == g.dims(table)[1]; });
  const std::string_view name = g.name(table);
  return same_width > 1 || name.find("wte") != std::string_view::npos ||
         name.find("word_embeddings") != std::string_view::npos || name.find("shared") != std::string_view::npos;
}

/// The product, with or without a bias behind it, is what the graph returns.
bool makes_output(const GraphView& g, NodeIndex n) {
  if (g.is_output(g.output(n))) return true;
  for (const NodeIndex reader : g.readers(g.output(n)))
    if ((g.is(reader, "Add") || g.is(reader, "Cast") || g.is(reader, "LogSoftmax") || g.is(reader, "Slice")) &&
        g.is_output(g.output(reader)))
      return true;
  return false;
}

}  // namespace

void plan_tied_weights(Recovery& r) {
  const GraphView& g = r.graph;
  std::vector<ValueId> embeddings;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const auto n = static_cast<NodeIndex>(i);
    if (!g.is(n, "Gather") || g.node(n).integer("axis", 0) != 0) continue;
    const ValueId table = g.input(n, 0);
    if (g.is_weight(table, 2) && g.initializer(table) &&
        std::find(embeddings.begin(), embeddings.end(), table) == embeddings.end())
      embeddings.push_back(table);
  }
  if (embeddings.empty()) return;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const auto n = static_cast<NodeIndex>(i);
    if (!g.is(n, "MatMul") && !g.is(n, "Gemm")) continue;
    const ValueId w = g.input(n, 1);
    const Initializer* matrix = g.initializer(w);
    if (!matrix || !g.is_weight(w, 2) || !is_anonymous(g.name(w)) || r.origins.group_of(n)) continue;
    for (const ValueId e : embeddings) {
      if (e == w) continue;
      const Dims &d = g.dims(w), &table = g.dims(e);
      const bool transposed = d[0] == table[1] && d[1] == table[0];
      // The head of a vocabulary: many more rows than columns, at the graph's end.
      if ((!transposed && d != table) || table[0] <= table[1] || !makes_output(g, n)) continue;
      const std::string name(g.name(e));
      switch (same_weights(g.model(), g.initializer(e)->tensor, matrix->tensor, transposed)) {
        case Same::no:
          continue;
        case Same::unknown: {
          const Bytes weight = bytes_of(g.value(e).dtype, g.value(e).count());
          r.diagnose("tied-weights-unknown", Severity::warning,
                     "whether the last layer shares " + name + " is not in the file (no weight bytes); taken to be " +
                         (usually_tied(g, embeddings, e) ? "tied" : "separate"),
                     weight * 4);  // weight, gradient, two optimizer states
          if (!usually_tied(g, embeddings, e)) continue;
          break;
        }
        case Same::yes:
          break;
      }
      const SlotId slot = r.parameters.stored(e);
      r.parameters.same_as(w, slot);
      r.parameters.also_named(slot, std::string(r.origins.module(n)) + ".weight");
      break;
    }
  }
}

}  // namespace headroom::recovery
