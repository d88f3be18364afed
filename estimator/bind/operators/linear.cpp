// Matrix products.
#include <algorithm>
#include <map>

#include "estimator/bind/operators/families.h"
#include "estimator/bind/operators/products.h"

namespace headroom {

Dims matmul_dims(const NodeShaper& op, Dims a, Dims b) {
  op.require(!a.empty() && !b.empty(), "an operand is a scalar");
  const bool a_vector = a.size() == 1, b_vector = b.size() == 1;
  if (a_vector) a.insert(a.begin(), 1);
  if (b_vector) b.push_back(1);
  op.same_size(a.back(), b[b.size() - 2], "the inner sizes");
  Dims result = op.broadcast(Dims(a.begin(), a.end() - 2), Dims(b.begin(), b.end() - 2));
  if (!a_vector) result.push_back(a[a.size() - 2]);
  if (!b_vector) result.push_back(b.back());
  return result;
}

namespace {

void matmul(const NodeShaper& op) { op.set(0, op.dtype(0), matmul_dims(op, op.dims(0), op.dims(1))); }
void matmul_integer(const NodeShaper& op) { op.set(0, DType::i32, matmul_dims(op, op.dims(0), op.dims(1))); }

/// QLinearMatMul(a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point).
void qlinear_matmul(const NodeShaper& op) { op.set(0, op.dtype(7), matmul_dims(op, op.dims(0), op.dims(3))); }

void gemm(const NodeShaper& op) {
  const Dims &a = op.dims_of_rank(0, 2), &b = op.dims_of_rank(1, 2);
  const bool ta = op.node().integer("transA", 0) != 0, tb = op.node().integer("transB", 0) != 0;
  op.same_size(a[ta ? 0 : 1], b[tb ? 1 : 0], "the inner sizes");
  const Dims result = {a[ta ? 1 : 0], b[tb ? 0 : 1]};
  if (op.has(2) && op.broadcast(result, op.dims(2)) != result) op.fail("C does not broadcast to " + text_of(result));
  op.set(0, op.dtype(0), result);
}

/// A term has letters, and at most one "...".
void require_letters(const NodeShaper& op, std::string_view term) {
  const auto dots = std::count(term.begin(), term.end(), '.');
  op.require(dots == 0 || (dots == 3 && term.find("...") != std::string_view::npos),
             "the term \"" + std::string(term) + "\" has dots out of place");
}

/// Einsum: letters name dims, "..." the broadcast ones; without an arrow the result has the letters that stand once, in
/// alphabetical order.
void einsum(const NodeShaper& op) {
  std::string equation(op.node().text("equation"));
  std::erase(equation, ' ');
  const auto arrow = equation.find("->");
  std::string_view left = std::string_view(equation).substr(0, arrow);
  std::map<char, std::int64_t> sizes;
  std::map<char, int> times;
  Dims ellipsis;
  for (std::size_t i = 0; i < op.input_count(); ++i) {
    const auto comma = left.find(',');
    const std::string_view term = left.substr(0, comma);
    op.require(comma != std::string_view::npos || i + 1 == op.input_count(), "the equation has too few terms");
    left.remove_prefix(comma == std::string_view::npos ? left.size() : comma + 1);
    const Dims& d = op.dims(i);
    const bool dots = term.find("...") != std::string_view::npos;
    const std::size_t letters = term.size() - (dots ? 3 : 0);
    require_letters(op, term);
    op.require(dots ? letters <= d.size() : letters == d.size(),
               "the term \"" + std::string(term) + "\" does not fit input " + std::to_string(i));
    std::size_t axis = 0;
    for (std::size_t c = 0; c < term.size(); ++c) {
      if (term[c] == '.') {
        const std::size_t more = d.size() - letters;
        const auto from = d.begin() + static_cast<std::ptrdiff_t>(axis);
        ellipsis = op.broadcast(ellipsis, Dims(from, from + static_cast<std::ptrdiff_t>(more)));
        axis += more;
        c += 2;
        continue;
      }
      auto [at, fresh] = sizes.emplace(term[c], d[axis]);
      if (!fresh && at->second == 1)
        at->second = d[axis];
      else if (d[axis] != 1)
        op.same_size(at->second, d[axis], std::string("the sizes of ") + term[c] + ":");
      ++times[term[c]];
      ++axis;
    }
  }
  op.require(left.empty(), "the equation has more terms than the node has inputs");
  std::string right;
  if (arrow == std::string::npos) {
    right = "...";
    for (const auto& [letter, count] : times)
      if (count == 1) right += letter;
  } else {
    right = equation.substr(arrow + 2);
  }
  require_letters(op, right);
  Dims result;
  for (std::size_t c = 0; c < right.size(); ++c) {
    if (right[c] == '.') {
      result.insert(result.end(), ellipsis.begin(), ellipsis.end());
      c += 2;
      continue;
    }
    const auto found = sizes.find(right[c]);
    op.require(found != sizes.end(), std::string("the result names ") + right[c] + ", which no input has");
    result.push_back(found->second);
  }
  op.set(0, op.dtype(0), std::move(result));
}

void det(const NodeShaper& op) {
  const Dims& d = op.dims(0);
  op.require(d.size() >= 2, "the input is no matrix");
  op.same_size(d[d.size() - 2], d.back(), "rows and columns");
  op.set(0, op.dtype(0), Dims(d.begin(), d.end() - 2));
}

constexpr OperatorRule rules[] = {
    {"MatMul", matmul},
    {"MatMulInteger", matmul_integer},
    {"QLinearMatMul", qlinear_matmul},
    {"Gemm", gemm},
    {"Einsum", einsum},
    {"Det", det},
};

}  // namespace

std::span<const OperatorRule> linear_rules() { return rules; }

}  // namespace headroom
