#include <doctest/doctest.h>

#include <string>

#include "estimator/recover/fx_text.h"
#include "estimator/recover/stack_trace.h"

using namespace headroom::recovery;

TEST_CASE("fx nodes are read") {
  const auto n = parse_fx_node(
      "%add_1 : [num_users=2] = call_function[target=torch.ops.aten.add.Tensor](args = (%x, [-1, %n, 2.5e-3], None, "
      "True, -inf, "
      "torch.float32), kwargs = {alpha: 2, mode: 'a b', device: cpu})");
  REQUIRE(n);
  CHECK(n->name == "add_1");
  CHECK(n->target == "aten.add.Tensor");
  REQUIRE(n->args.size() == 6);
  CHECK(n->args[0].text == "x");
  CHECK(n->args[1].items[0].integer == -1);
  CHECK(n->args[1].items[1].is_reference());
  CHECK(n->args[1].items[2].real == doctest::Approx(2.5e-3));
  CHECK(n->args[2].is(FxArg::Kind::none));
  CHECK(n->args[3].integer == 1);
  CHECK(n->args[4].real < -1e300);
  CHECK(n->args[5].text == "torch.float32");
  CHECK(n->keyword("alpha")->integer == 2);
  CHECK(n->keyword("mode")->text == "a b");
}

TEST_CASE("opaque text is no error") {
  for (const char* text :
       {"", "%", "%a :", "%a : x = call_function[target=f](args = (", "%a : call_function[target=f](args = (%b",
        "%a : call_function[target=f](args = (1,), kwargs = {", "no node at all"})
    CHECK_FALSE(parse_fx_node(text));
  CHECK_FALSE(parse_fx_node("%a : call_function[target=f](args = " + std::string(100, '(')));
}

TEST_CASE("stack traces give frames, outermost first") {
  StackTraceReader reader;
  const auto& frames = reader.frames(
      "File \"a/train.py\", line 3, in forward\n    return self.m(x)\nFile \"b/model.py\", line 20, in helper\n"
      "  File \"c/norm.py\", line 5, in forward\n    y = x + 1\n");
  REQUIRE(frames.size() == 3);
  CHECK(frames[0].file == "train.py");
  CHECK(frames[0].source == "return self.m(x)");
  CHECK(frames[1].function == "helper");
  CHECK(frames[1].source.empty());
  CHECK(frames[2].line == "5");
  CHECK(parse_string_list("['', \"m\", 'm.h.0']") == std::vector<std::string_view>{"", "m", "m.h.0"});
}

TEST_CASE("a trace is read the same after any other") {
  const std::string outer = "File \"a.py\", line 3, in forward\n    return self.m(x)\n";
  const std::vector<std::string> traces = {outer + "  File \"b.py\", line 20, in helper\n    y = f(x)",
                                           outer + "  File \"b.py\", line 21, in helper\n    return y",
                                           outer + "  File \"b.py\", line 21, in helper\n    return y + 1",
                                           outer + "  File \"b.py\", line 21, in helper",
                                           outer,
                                           "File \"a.py\", line 3, in forward\n    return self.m(x, y)\n",
                                           "File \"a.py\", line 3, in forward\n",
                                           "no trace",
                                           "",
                                           outer.substr(0, 40)};
  const auto text = [](const std::vector<Frame>& frames) {
    std::string all;
    for (const Frame& f : frames)
      all += std::string(f.file) + ":" + std::string(f.line) + " " + std::string(f.function) + " " +
             std::string(f.source) + "\n";
    return all;
  };
  for (const std::string& first : traces)
    for (const std::string& second : traces) {
      StackTraceReader alone, after;
      after.frames(first);
      CHECK(text(after.frames(second)) == text(alone.frames(second)));
    }
}
