// Tensors: dims and types always; bytes only when they lie there as they are needed, or are few.
#include "tests/read/build.h"

namespace headroom::test {
namespace {

using Where = TensorData::Where;
using Proto = onnx::TensorProto;

Read model_of(const Proto& t) {
  auto g = graph({node("Identity", {t.name()}, {"y"})}, {}, {"y"});
  *g.add_initializer() = t;
  return read(model(g));
}
const TensorData& data(const Read& r) { return r.graph().initializers[0].tensor; }

std::vector<int> bytes(const Read& r) {
  std::vector<int> v;
  for (const std::byte b : data(r).bytes) v.push_back(std::to_integer<int>(b));
  return v;
}

Proto with_ints(Proto t, const std::vector<int>& values) {
  for (const int v : values) t.add_int32_data(v);
  return t;
}

TEST_CASE("raw data is a view into the file") {
  auto t = tensor("w", {2, 2}, Proto::UINT8);
  t.set_raw_data("abcd");
  const Read r = model_of(t);
  CHECK(data(r).where == Where::raw);
  CHECK(bytes(r) == std::vector<int>{'a', 'b', 'c', 'd'});
  const auto* at = reinterpret_cast<const char*>(data(r).bytes.data());
  CHECK((at > r.bytes.data() && at < r.bytes.data() + r.bytes.size()));
}

TEST_CASE("a stripped tensor has dims and type only; an empty one has its zero bytes") {
  Read r = model_of(tensor("w", {1000, 1000}, Proto::BFLOAT16));
  CHECK(data(r).where == Where::nowhere);
  CHECK(data(r).dtype == DType::bf16);
  CHECK(data(r).dims.size() == 2);
  CHECK(data(model_of(tensor("w", {0}, Proto::INT64))).where == Where::raw);
  r = model_of(tensor("w", {}));  // rank 0 is one element
  CHECK(data(r).where == Where::nowhere);
  CHECK(r.model.diagnostics.empty());
}

TEST_CASE("typed fields are decoded to the bytes that raw data would have") {
  CHECK(bytes(model_of(with_ints(tensor("w", {2}, Proto::INT32), {1, -2}))) ==
        std::vector<int>{1, 0, 0, 0, 0xFE, 0xFF, 0xFF, 0xFF});
  CHECK(bytes(model_of(with_ints(tensor("w", {2}, Proto::FLOAT16), {0x3C00, 0xBC00}))) ==
        std::vector<int>{0x00, 0x3C, 0x00, 0xBC});
  CHECK(bytes(model_of(with_ints(tensor("w", {3}, Proto::BOOL), {1, 0, 1}))) == std::vector<int>{1, 0, 1});
  CHECK(bytes(model_of(with_ints(tensor("w", {2}, Proto::INT8), {-1, 5}))) == std::vector<int>{0xFF, 5});
  auto f = tensor("w", {1});
  f.add_float_data(1.F);
  CHECK(bytes(model_of(f)) == std::vector<int>{0, 0, 0x80, 0x3F});
  auto d = tensor("w", {1}, Proto::DOUBLE);
  d.add_double_data(1);
  CHECK(bytes(model_of(d)) == std::vector<int>{0, 0, 0, 0, 0, 0, 0xF0, 0x3F});
  auto u = tensor("w", {1}, Proto::UINT32);
  u.add_uint64_data(0x01020304);
  CHECK(bytes(model_of(u)) == std::vector<int>{4, 3, 2, 1});
  auto c = tensor("w", {1}, Proto::COMPLEX64);
  c.add_float_data(0.F);
  c.add_float_data(1.F);
  CHECK(bytes(model_of(c)) == std::vector<int>{0, 0, 0, 0, 0, 0, 0x80, 0x3F});
}

TEST_CASE("below eight bits an entry holds a whole byte of elements; six-bit ones are packed, four in three bytes") {
  CHECK(bytes(model_of(with_ints(tensor("w", {5}, Proto::INT4), {0x21, 0x43, 0x05}))) ==
        std::vector<int>{0x21, 0x43, 0x05});
  CHECK(bytes(model_of(with_ints(tensor("w", {5}, Proto::UINT2), {0xE4, 0x01}))) == std::vector<int>{0xE4, 0x01});
  // 1, 2, 3, 4, 5 -> bits 000001 000010 000011 000100 | 000101, lowest first
  CHECK(bytes(model_of(with_ints(tensor("w", {5}, Proto::FLOAT6E2M3), {1, 2, 3, 4, 5}))) ==
        std::vector<int>{0x81, 0x30, 0x10, 0x05});
}

TEST_CASE("every element type of the schema has a size") {
  const std::vector<std::pair<Proto::DataType, std::size_t>> bytes_of_five = {
      {Proto::FLOAT, 20},         {Proto::UINT8, 5},       {Proto::INT8, 5},           {Proto::UINT16, 10},
      {Proto::INT16, 10},         {Proto::INT32, 20},      {Proto::INT64, 40},         {Proto::BOOL, 5},
      {Proto::FLOAT16, 10},       {Proto::DOUBLE, 40},     {Proto::UINT32, 20},        {Proto::UINT64, 40},
      {Proto::COMPLEX64, 40},     {Proto::COMPLEX128, 80}, {Proto::BFLOAT16, 10},      {Proto::FLOAT8E4M3FN, 5},
      {Proto::FLOAT8E4M3FNUZ, 5}, {Proto::FLOAT8E5M2, 5},  {Proto::FLOAT8E5M2FNUZ, 5}, {Proto::UINT4, 3},
      {Proto::INT4, 3},           {Proto::FLOAT4E2M1, 3},  {Proto::FLOAT8E8M0, 5},     {Proto::UINT2, 2},
      {Proto::INT2, 2},           {Proto::FLOAT6E2M3, 4},  {Proto::FLOAT6E3M2, 4}};
  CHECK(bytes_of_five.size() == Proto::DataType_ARRAYSIZE - 2);  // without undefined and string
  for (const auto& [type, size] : bytes_of_five) {
    CAPTURE(type);
    auto t = tensor("w", {5}, type);
    t.set_raw_data(std::string(size, 'x'));
    const Read r = model_of(t);
    CHECK(data(r).where == Where::raw);
    CHECK(r.model.diagnostics.empty());
  }
}

TEST_CASE("an element type from the future counts one byte an element, and is said") {
  auto t = tensor("w", {5});
  t.set_data_type(99);
  const Read r = model_of(t);
  CHECK(data(r).dtype == DType::u8);
  REQUIRE(r.model.diagnostics.size() == 1);
  CHECK(r.model.diagnostics[0].code == "unknown-dtype");
}

TEST_CASE("many typed elements stay where they are") {
  auto t = tensor("w", {20'000});  // 80,000 bytes
  for (int i = 0; i < 20'000; ++i) t.add_float_data(1.F);
  const Read r = model_of(t);
  CHECK(data(r).where == Where::typed);
  CHECK(data(r).bytes.empty());
}

TEST_CASE("data that does not fit its dims is not used, and that is said") {
  auto raw = tensor("w", {3});
  raw.set_raw_data("12345");
  for (const auto& t : {raw, with_ints(tensor("w", {3}, Proto::INT32), {1, 2}),
                        with_ints(tensor("w", {3}, Proto::INT32), {1, 2, 3, 4})}) {
    const Read r = model_of(t);
    CHECK(data(r).where == Where::nowhere);
    CHECK(data(r).bytes.empty());
    REQUIRE(r.model.diagnostics.size() == 1);
    CHECK(r.model.diagnostics[0].code == "tensor-data-mismatch");
  }
}

TEST_CASE("integers where a complex tensor needs floats") {
  const Read r = model_of(with_ints(tensor("w", {1}, Proto::COMPLEX128), {1}));
  CHECK(data(r).where == Where::nowhere);
}

TEST_CASE("strings have no bytes of their own") {
  auto t = tensor("w", {2}, Proto::STRING);
  t.add_string_data("one");
  t.add_string_data("two");
  const Read r = model_of(t);
  CHECK(data(r).where == Where::typed);
  CHECK(data(r).dtype == DType::string);
}

TEST_CASE("external data is named, not opened") {
  auto t = tensor("w", {2});
  t.set_data_location(Proto::EXTERNAL);
  for (const auto& [key, content] : std::vector<std::pair<std::string, std::string>>{
           {"location", "weights.bin"}, {"offset", "4096"}, {"length", "8"}, {"checksum", "x"}}) {
    auto* entry = t.add_external_data();
    entry->set_key(key);
    entry->set_value(content);
  }
  const Read r = model_of(t);
  CHECK(data(r).where == Where::external);
  CHECK(data(r).location == "weights.bin");
  CHECK(data(r).offset == 4096);
  CHECK(data(r).length == 8);
}

TEST_CASE("sparse initializers have the dense tensor's dims") {
  auto g = graph({node("Identity", {"w"}, {"y"})}, {}, {"y"});
  auto* sparse = g.add_sparse_initializer();
  *sparse->mutable_values() = tensor("w", {3});
  *sparse->mutable_indices() = tensor("", {3}, Proto::INT64);
  for (const int d : {100, 200}) sparse->add_dims(d);
  const Read r = read(model(g));
  CHECK(r.graph().initializers[0].sparse);
  CHECK(r.graph().initializers[0].stored_count == 3);
  CHECK(data(r).name == "w");
  CHECK(data(r).dims[1] == 200);
  CHECK(data(r).where == Where::nowhere);
}

TEST_CASE("an initializer that is there twice counts once") {
  auto g = graph({node("Identity", {"w"}, {"y"})}, {}, {"y"});
  *g.add_initializer() = tensor("w", {3});
  *g.add_initializer() = tensor("w", {5});
  const Read r = read(model(g));
  REQUIRE(r.graph().initializers.size() == 1);
  CHECK(data(r).dims[0] == 3);
  CHECK(r.model.diagnostics.at(0).code == "initializer-twice");
}

TEST_CASE("dimensions that cannot be") {
  auto g = graph({node("Identity", {"w"}, {"y"})}, {}, {"y"});
  *g.add_initializer() = tensor("w", {4, -3});
  CHECK(contains(failure(model(g)), "negative dimension: -3 | "));
  CHECK(contains(failure(model(g)), "tensor 'w'"));
  const std::int64_t big = std::int64_t{1} << 32;
  *g.mutable_initializer(0) = tensor("w", {big, big});
  CHECK(contains(failure(model(g)), "overflow"));
  *g.mutable_initializer(0) = tensor("w", {big, big / 2});  // 2^63 elements
  CHECK(contains(failure(model(g)), "overflow"));
  *g.mutable_initializer(0) = tensor("w", {big, big / 8});  // 2^61 elements, 2^63 bytes
  CHECK(contains(failure(model(g)), "overflow"));
}

}  // namespace
}  // namespace headroom::test
