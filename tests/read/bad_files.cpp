// Files that are no model: one clear error each, whatever the bytes.
#include <sys/stat.h>

#include "estimator/read/mapped_file.h"
#include "tests/read/build.h"

namespace headroom::test {
namespace {

/// A file with a bit of everything.
std::string rich_model() {
  auto body = graph({node("Add", {"h", "w"}, {"t"})}, {}, {"t"});
  *body.add_initializer() = tensor("w", {2}, onnx::TensorProto::INT64);
  body.mutable_initializer(0)->add_int64_data(3);
  body.mutable_initializer(0)->add_int64_data(4);
  auto conv = with(node("Conv", {"x", "k"}, {"h"}, "/conv"), {int_attribute("group", 1)});
  auto* entry = conv.add_metadata_props();
  entry->set_key("pkg.torch.onnx.fx_node");
  entry->set_value("%conv");
  auto scale = node("scale", {"y"}, {"z"}, "call");
  scale.set_domain("local");
  auto g = graph(
      {conv,
       with(node("If", {"c"}, {"y"}), {graph_attribute("then_branch", body), graph_attribute("else_branch", body)}),
       scale},
      {"x", "c"}, {"z"});
  *g.add_initializer() = tensor("k", {2, 2});
  g.mutable_initializer(0)->set_raw_data(std::string(16, '\1'));
  auto m = model(g);
  auto* f = m.add_functions();
  f->set_domain("local");
  f->set_name("scale");
  f->add_input("a");
  f->add_output("r");
  *f->add_node() = with(node("Mul", {"a", "a"}, {"r"}), {reference("axis", "axis")});
  *f->add_attribute_proto() = int_attribute("axis", 1);
  return m.SerializeAsString();
}

/// Reads bytes that may be anything; only an Error may come out.
bool readable(std::string_view bytes) {
  try {
    const Model m = read_bytes(bytes);
    return true;
  } catch (const Error& e) {
    CHECK(e.code() == Exit::bad_input);
    return false;
  }
}

std::string varint(std::uint64_t n) {
  std::string out;
  for (; n >= 0x80; n >>= 7) out += static_cast<char>(n | 0x80);
  return out + static_cast<char>(n);
}
std::string field(int number, const std::string& content) {
  return varint(static_cast<std::uint64_t>(number) << 3 | 2) + varint(content.size()) + content;
}

std::string failure_of_file(const std::filesystem::path& path) {
  try {
    read_model(path);
  } catch (const Error& e) {
    CHECK(e.code() == Exit::bad_input);
    return std::string(e.what()) + " | " + e.where() + " | " + e.hint();
  }
  FAIL("read without an error");
  return {};
}

TEST_CASE("cut at every byte") {
  const std::string whole = rich_model();
  REQUIRE(readable(whole));
  int read_all_the_same = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) read_all_the_same += readable(whole.substr(0, size));
  // Where the file ends with whole functions, only the last of them is missing: the node stays an unknown operator.
  CHECK(read_all_the_same <= 1);
  CHECK(contains(failure(whole.substr(0, whole.size() / 2)), "byte"));
}

TEST_CASE("every byte changed in many ways") {
  const std::string whole = rich_model();
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (const int flip : {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80, 0xFF}) {
      std::string mutated = whole;
      mutated[i] = static_cast<char>(mutated[i] ^ flip);
      readable(mutated);
    }
}

TEST_CASE("every byte left out, and doubled") {
  const std::string whole = rich_model();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    readable(whole.substr(0, i) + whole.substr(i + 1));
    readable(whole.substr(0, i + 1) + whole.substr(i));
  }
}

TEST_CASE("20,000 nested sub-graphs") {
  // From the inside out, as a message begins with the size of what it holds; `begin` is put together backwards.
  const std::string output = field(12, field(1, "y"));
  const std::string innermost = field(1, field(1, "x") + field(2, "y") + field(4, "Abs")) + output;
  const std::string node_begin = field(1, "c") + field(2, "y") + field(4, "If");
  const std::string attribute_begin = field(1, "then_branch");
  std::vector<std::string> begin;
  std::string end;
  std::size_t size = innermost.size();
  const auto wrap = [&](int number, const std::string& before) {
    begin.push_back(before + varint(static_cast<std::uint64_t>(number) << 3 | 2) + varint(size));
    size += begin.back().size();
  };
  for (int i = 0; i < 20'000; ++i) {
    wrap(6, attribute_begin);
    wrap(5, node_begin);
    wrap(1, "");
    end += output;
    size += output.size();
  }
  wrap(7, "\x08\x08");
  std::string bytes;
  for (auto it = begin.rbegin(); it != begin.rend(); ++it) bytes += *it;
  CHECK(contains(failure(bytes + innermost + end + field(8, "\x10\x11")), "nested too deep"));
}

TEST_CASE("deep types, deep groups, long numbers, lengths beyond 64 bits") {
  std::string type = field(1, "\x08\x01");
  for (int i = 0; i < 20'000; ++i) type = field(4, field(1, type));
  const std::string nodes = field(1, field(1, "x") + field(2, "y") + field(4, "Abs"));
  const std::string value_x = field(11, field(1, "x") + field(2, type));
  const std::string g = nodes + value_x + field(12, field(1, "y"));
  const std::string good = "\x08\x08" + field(7, g) + field(8, "\x10\x11");
  CHECK(read_bytes(good).graph().inputs[0].type.kind == DeclaredType::Kind::sequence);

  std::string groups;
  for (int i = 0; i < 100'000; ++i) groups += "\x0B";
  CHECK(contains(failure(good + groups), "groups nested too deep"));
  CHECK(contains(failure(good + "\x0B\x14"), "a group ends that was not begun"));
  CHECK(contains(failure(good + std::string(11, '\xFF')), "longer than ten bytes"));
  CHECK(contains(failure(good + "\x12" + std::string(9, '\xFF') + "\x01"), "longer than what is left"));
  CHECK(contains(failure(good + "\x07"), "field number"));
  CHECK(contains(failure(good + "\x0F"), "unknown kind"));
  CHECK(contains(failure(good + field(7, g)), "a second graph"));
}

TEST_CASE("other files are recognised") {
  CHECK(contains(failure("just some text\n"), "a text file"));
  CHECK(contains(failure("{\"ir_version\": 8}"), "a text file"));
  CHECK(contains(failure("<ir_version: 8, opset_import: [\"\" : 17]>"), "a text file"));
  CHECK(contains(failure("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), "git lfs pull"));
  CHECK(contains(failure(std::string("PK\x03\x04\x14\0\0\0", 8)), "torch.onnx.export"));
  CHECK(contains(failure("GGUF\x03"), "GGUF"));
  CHECK(contains(failure(std::string("\x40\0\0\0\0\0\0\0{\"w\":", 13)), "safetensors"));
  CHECK(contains(failure("<!DOCTYPE html>"), "HTML"));
  CHECK(contains(failure(std::string("\x08\x08", 2)), "it has no graph"));
}

TEST_CASE("what is no regular file") {
  const Folder folder;
  const auto model = folder.write("model.onnx", rich_model());
  CHECK(read_model(model).graph().nodes.size() == 3);
  CHECK(contains(failure_of_file(folder.path() / "modle.onnx"), "did you mean '" + model.string() + "'?"));
  CHECK(contains(failure_of_file(folder.path()), "is a directory"));
  CHECK(contains(failure_of_file(folder.path()), "model.onnx"));
  CHECK(contains(failure_of_file(model / "inside"), "no such file"));
  CHECK(contains(failure_of_file(folder.write("empty.onnx", "")), "the file is empty"));
  const auto pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(contains(failure_of_file(pipe), "is no regular file"));
  CHECK(contains(failure_of_file("/dev/zero"), "is no regular file"));
}

TEST_CASE("a huge hole is a damaged file, not much memory") {
  const Folder folder;
  const auto path = folder.write("hole.onnx", "\x08\x08");
  std::error_code ec;
  std::filesystem::resize_file(path, std::uintmax_t{1} << 42, ec);
  if (!ec) CHECK(contains(failure_of_file(path), "field number"));
}

TEST_CASE("weights of a large file are stepped over, and its names do not point into it") {
  const Folder folder;
  constexpr std::int64_t count = 64 << 20;  // 256 MiB of float32, a hole in the file
  const std::string header =
      "\x08" + varint(count) + std::string("\x10\x01") + field(8, "w") + "\x4A" + varint(4 * count);
  const std::string tail = field(11, field(1, "x")) + field(12, field(1, "y"));
  const std::string nodes = field(1, field(1, "x") + field(1, "w") + field(2, "y") + field(3, "n") + field(4, "Add"));
  const std::size_t tensor_size = header.size() + 4 * count;
  const std::size_t graph_size = nodes.size() + 1 + varint(tensor_size).size() + tensor_size + tail.size();
  const std::string begin = "\x08\x08\x3A" + varint(graph_size) + nodes + "\x2A" + varint(tensor_size) + header;
  const auto path = folder.write("large.onnx", begin);
  std::filesystem::resize_file(path, begin.size() + 4 * count);
  std::ofstream(path, std::ios::binary | std::ios::app) << tail << field(8, "\x10\x11");
  const Model m = read_model(path);
  CHECK(m.graph().initializers[0].tensor.where == TensorData::Where::raw);
  CHECK(m.graph().initializers[0].tensor.bytes.size() == 4 * count);
  CHECK(m.file_bytes > 4 * count);
  std::filesystem::resize_file(path, 1);
  CHECK(m.graph().nodes[0].op_type == "Add");
  CHECK(m.name_of(m.graph().nodes[0].input(1)) == "w");
}

TEST_CASE("a file that shrinks while it is read reads as zeros, and that is known") {
  const Folder folder;
  const auto path = folder.write("model.onnx", std::string(1 << 20, 'x'));
  const MappedFile file(path);
  CHECK_FALSE(file.shrank());
  std::filesystem::resize_file(path, 5000);
  std::size_t sum = 0;
  for (const char c : file.bytes()) sum += c == 'x';
  CHECK(sum == 5000);
  CHECK(file.shrank());
}

}  // namespace
}  // namespace headroom::test
