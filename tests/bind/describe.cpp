#include "estimator/bind/describe.h"

#include <doctest/doctest.h>

#include <span>

#include "tests/bind/case_text.h"

using namespace headroom;

TEST_CASE("a shaped graph as text") {
  const test::Case c = test::parse_case(
      "--batch 2 | x = f32[batch,3]; s = Shape(x); y = Loop<body={(i, c, v) -> d = Identity(c); o = Relu(v) -> (d, o)}>"
      "(i64(4), _, x); NonZero(y) -> ~i64[2,6]");
  const Model model = read_model(std::as_bytes(std::span(c.file)), {});
  CHECK(describe(bind(model, c.bindings)) ==
        "dim batch = 2  (batch, --batch)\n"
        "input x: float32 [2, 3]\n"
        "s: int64 [2] = {2, 3}  (Shape)\n"
        "y: float32 [2, 3]  (Loop)\n"
        "  body body, 4 times\n"
        "    d: bool [] = {1}  (Identity)\n"
        "    o: float32 [2, 3]  (Relu)\n"
        "y0: int64 ~[2, 6]  (NonZero)\n"
        "output y0: int64 ~[2, 6]\n");
}
