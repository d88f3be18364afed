// Whole programs: what each export stands for, as `inspect --stage program` prints it.
#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "tests/recover/cases.h"

using namespace headroom;
using namespace headroom::test;

TEST_CASE("each export gives its expected program") {
  for (const std::string& name : case_names()) {
    CAPTURE(name);
    std::ifstream in(expected_file(name));
    std::ostringstream expected;
    expected << in.rdbuf();
    CHECK(describe(recovered(name)) == expected.str());
  }
}

TEST_CASE("all exports of a module have the same parameters, whatever the file merged, folded or transposed") {
  std::map<std::string, std::multiset<std::string>> by_module;
  for (const std::string& name : case_names()) {
    std::multiset<std::string> dims;
    for (const Parameter& p : recovered(name).parameters)
      if (p.trainable) dims.insert(text_of(p.dims));
    const std::string module = name.substr(0, name.find('.'));
    const auto [it, fresh] = by_module.emplace(module, dims);
    CAPTURE(name);
    if (!fresh) CHECK(it->second == dims);
  }
}

TEST_CASE("every value is made once and let go once") {
  for (const std::string& name : case_names())
    for (const RecoverOptions options :
         {RecoverOptions{}, RecoverOptions{.training = false}, RecoverOptions{.training = false, .fast_path = true}}) {
      CAPTURE(name);
      const Program p = recovered(name, options);
      std::vector<int> made(p.slot_count(), 0), dropped(p.slot_count(), 0);
      for (const Parameter& q : p.parameters) made[q.slot.at()] = 1;
      for (const ProgramInput& i : p.inputs) made[i.slot.at()] = 1;
      for (const Call& c : p.calls) {
        for_each_read(c, [&](SlotId s) {
          CHECK_MESSAGE(made[s.at()] == 1, p.slot_names[s.at()]);
          CHECK_MESSAGE(dropped[s.at()] == 0, p.slot_names[s.at()]);
        });
        for (const SlotId s : c.outputs)
          if (s.valid()) ++made[s.at()];
        for (const SlotId s : c.drops) ++dropped[s.at()];
      }
      for (const ProgramOutput& o : p.outputs) ++dropped[o.slot.at()];
      for (const Call& c : p.calls)
        for (const SlotId s : c.outputs)
          if (s.valid()) {
            CHECK_MESSAGE(made[s.at()] == 1, p.slot_names[s.at()]);
            CHECK_MESSAGE(dropped[s.at()] == 1, p.slot_names[s.at()]);
          }
    }
}

TEST_CASE("slots: parameters in their order, then inputs") {
  for (const std::string& name : case_names()) {
    const Program p = recovered(name);
    std::size_t next = 0;
    for (const Parameter& q : p.parameters) CHECK(q.slot.at() == next++);
    for (const ProgramInput& i : p.inputs) CHECK(i.slot.at() == next++);
  }
}

TEST_CASE("outside training nothing is dropped out or counted up") {
  for (const std::string& name : case_names()) {
    const Program p = recovered(name, {false});
    for (const Call& c : p.calls) {
      const std::string& op = p.name_of(c.op);
      CHECK(op != "aten::bernoulli_.float");
      if (op == "aten::dropout") CHECK(std::get<bool>(c.args[2]) == false);
      if (op == "aten::batch_norm") CHECK(std::get<bool>(c.args[5]) == false);
    }
  }
}
