// Cases as text: one line is a graph, how its dims are bound, and what must come out.
//
//   --batch 2 | ids = i64[batch,8]; Gather(f32[10,4], ids) -> f32[2,8,4] says dim-taken
//   Reshape(f32[2,3], i64{3,-1}) -> f32[3,2]
//   MatMul(f32[2,3], f32[4,5]) -> error 3: inner sizes
//
// A tensor is its type and dims (a graph input), with elements in {} or one element in () (an initializer); "_" is an
// absent input. Attributes stand in <>: name=1, 1.5, "text", [1,2], i64{1}, {(inputs) -> statements -> (outputs)}. The
// outputs of the last statement are compared: "~" before a bound, elements in {} when they must be known. A sequence
// is seq(element, ...).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "estimator/bind/shaped_graph.h"

namespace headroom::test {

struct Case {
  std::string file;  ///< the ONNX model, serialised
  Bindings bindings;
  std::vector<std::string> operators;  ///< "domain::op_type" of its nodes
  std::vector<std::string> expected;   ///< one text for each output of the last statement
  int error = 0;                       ///< exit code that is expected, 0 for none
  std::string error_part;              ///< must occur in what, where or hint
  std::vector<std::string> says;       ///< codes of diagnostics
};

/// Throws std::runtime_error when the line is no case.
Case parse_case(std::string_view line);

/// A value as the cases write it; contents only when `with_contents`.
std::string case_text_of(const ShapedValue& value, bool with_contents);

}  // namespace headroom::test
