// The pickle reader: protocols, and files made to hurt.
#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "estimator/allocate/history.h"
#include "estimator/allocate/pickle_reader.h"
#include "estimator/base/error.h"
#include "tests/allocate/data.h"

namespace headroom {
namespace {

using namespace std::string_literals;

std::optional<Error> refusal(const std::string& bytes) {
  try {
    parse_histories(bytes, "file.pickle");
  } catch (const Error& error) {
    CHECK(error.code() == Exit::bad_input);
    CHECK(error.where().starts_with("file.pickle"));
    return error;
  }
  return std::nullopt;
}
bool refused_with(const std::string& bytes, const std::string& words) {
  const auto error = refusal(bytes);
  if (!error) return false;
  INFO(error->what());
  return std::string(error->what()).find(words) != std::string::npos;
}

TEST_CASE("values of every protocol") {
  const std::string bytes = "\x80\x05\x95\x40\x00\x00\x00\x00\x00\x00\x00"s +  // FRAME
                            "}(\x8c\x03"s + "int" + "J\xff\xff\xff\xff" + "\x8c\x04long\x8a\x05\x00\x00\x00\x00\x01" +
                            "X\x04\x00\x00\x00"s + "list" + "](K\x07M\x00\x01\x88\x89Ne" +
                            "\x8c\x05tupleK\x01K\x02\x86" + "\x8c\x04real" + "G?\xf8\x00\x00\x00\x00\x00\x00"s +
                            "\x8c\x05" + "text0I42\nL-7L\nF0.25\nS'a'\nVb\n" + "\x8c\x01k" + "u.";
  CHECK_THROWS_AS(read_pickle(bytes, "f"), Error);  // its last key has no value: odd number of items
  const std::string good = "\x80\x02}(X\x01\x00\x00\x00"s + "aJ\xff\xff\xff\xffX\x01\x00\x00\x00"s +
                           "b](K\x07M\x00\x01\x88Ne"s + "X\x01\x00\x00\x00"s + "cG?\xf8\x00\x00\x00\x00\x00\x00"s +
                           "X\x01\x00\x00\x00"s + "dI42\n" + "X\x01\x00\x00\x00"s + "eL-7L\nX\x01\x00\x00\x00"s +
                           "f\x8a\x05\x00\x00\x00\x00\x01"s + "X\x01\x00\x00\x00"s + "gVtext\nu.";
  const PlainData data = read_pickle(good, "f");
  CHECK(data.get(data.root, "a").as_integer() == -1);
  CHECK(data.items(data.get(data.root, "b")).size() == 4);
  CHECK(data.items(data.get(data.root, "b"))[1].as_integer() == 256);
  CHECK(data.get(data.root, "c").real == 1.5);
  CHECK(data.get(data.root, "d").as_integer() == 42);
  CHECK(data.get(data.root, "e").as_integer() == -7);
  CHECK(data.get(data.root, "f").as_integer() == 1LL << 32);
  CHECK(data.get(data.root, "g").as_text() == "text");
  CHECK(data.get(data.root, "h").kind == PlainValue::Kind::none);
}

TEST_CASE("opcodes that call things are refused by name") {
  CHECK(
      refused_with("\x80\x02"
                   "cos\nsystem\nX\x02\x00\x00\x00ls\x85R."s,
                   "GLOBAL would run code"));
  CHECK(refused_with("\x80\x04\x8c\x02os\x8c\x06system\x93."s, "STACK_GLOBAL would run code"));
  CHECK(refused_with("(ios\nsystem\n."s, "INST would run code"));
  for (const char opcode : {'R', 'b', 'o', 'P', 'Q', '\x81', '\x92', '\x82', '\x83', '\x84', '\x97', '\x98'}) {
    CHECK(refused_with("\x80\x04NN"s + opcode, "would run code"));
  }
}

TEST_CASE("truncated at every byte: one error, no crash") {
  const std::string whole = recorded_bytes("snap-ring.pickle");
  for (std::size_t n = 0; n < whole.size(); n += 1 + whole.size() / 997) CHECK(refusal(whole.substr(0, n)));
  CHECK(!refusal(whole));
}

TEST_CASE("claims of gigabytes cost nothing") {
  CHECK(refused_with("\x80\x02X\xff\xff\xff\xffx"s, "were announced"));
  CHECK(refused_with("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f"s, "were announced"));
  CHECK(refused_with("\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\xff"s, "were announced"));
  CHECK(refused_with("\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xff"s, "longer than the file"));
  CHECK(refused_with("\x80\x04\x8b\xff\xff\xff\xff"s, "were announced"));
}

TEST_CASE("structures that are none") {
  CHECK(refused_with("\x80\x06N."s, "newer than 5"));
  CHECK(refused_with("\x80\x02."s, "not there"));
  CHECK(
      refused_with("\x80\x02"
                   "a."s,
                   "not there"));
  CHECK(refused_with("\x80\x02Na."s, "not there"));
  CHECK(refused_with("\x80\x02NNa."s, "no list"));
  CHECK(refused_with("\x80\x02}(Nu."s, "key without a value"));
  CHECK(refused_with("\x80\x02u."s, "mark"));
  CHECK(refused_with("\x80\x02h\x05."s, "never stored"));
  CHECK(refused_with("\x80\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x01."s, "64 bits"));
  CHECK(refused_with("\x80\x02\xff."s, "no opcode"));
  CHECK(refused_with("I12x\n."s, "not a number"));
  CHECK(refused_with("Sx\n."s, "quotes"));
  CHECK(refusal(std::string(100'000, '(')));
  CHECK(refusal(std::string(100'000, ']') + "."));
  CHECK(refusal(""));
  CHECK(refusal("   "));
  CHECK(refusal("hello"));
}

TEST_CASE("a list that contains itself, and a list that is mentioned a million times") {
  // device_traces = [l] with l = [l]
  const std::string itself =
      "\x80\x02}(X\x0d\x00\x00\x00"s + "device_traces](]q\x01h\x01" + "aeX\x08\x00\x00\x00"s + "segments]u.";
  CHECK(parse_histories(itself, "file.pickle").at(0).entries.empty());
  std::string many = "\x80\x02}(X\x0d\x00\x00\x00"s + "device_traces](](";
  many += "}q\x01(X\x06\x00\x00\x00"s + "actionX\x05\x00\x00\x00"s + "allocX\x04\x00\x00\x00"s +
          "sizeK\x08X\x04\x00\x00\x00"s + "addrK\x00u"s;
  for (int i = 0; i < 10'000; ++i) many += "h\x01";
  many += "eeX\x08\x00\x00\x00"s + "segments]u.";
  CHECK(!refusal(many));
}

TEST_CASE("JSON that is damaged") {
  for (const char* bad :
       {"{", "[", "{\"events\": [[\"alloc\", 1", "{\"events\": 3}", "{\"events\": [[\"jump\", 1, 2, 0]]}",
        "{\"events\": [[\"alloc\", -1, 2, 0]]}", "{\"events\": [[\"alloc\", 1e30, 2, 0]]}",
        "{\"events\": [[\"alloc\"]]}", "{\"stats\": {}}", "[1, 2]", "[]", "{}",
        "{\"events\": [], \"segments\": [[0, 4096, 0, \"small\", false, [[512, 1, \"inactive\"]]]]}"}) {
    CAPTURE(bad);
    CHECK(refusal(bad));
  }
  CHECK(refusal(std::string(1'000'000, '[')));
}

TEST_CASE("frames, streams and pools of a real snapshot") {
  const History history = parse_histories(recorded_bytes("snap-graph.pickle"), "s").at(0);
  CHECK(history.segments.size() == 17);
  std::size_t with_site = 0;
  bool private_pool = false;
  Stream highest = 0;
  for (const TraceEntry& entry : history.entries) {
    if (history.call_site(entry.context).starts_with("/home/user/train.py:")) ++with_site;
    private_pool = private_pool || entry.pool != 0;
    highest = std::max(highest, entry.stream);
  }
  CHECK(with_site > 50);
  CHECK(private_pool);
  CHECK(highest == 2);
}

}  // namespace
}  // namespace headroom
