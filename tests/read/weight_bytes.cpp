// A few bytes of a weight, from the file or from beside it, and from nowhere else.
#include "tests/read/build.h"

namespace headroom::test {
namespace {

std::string text(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string external_model(const std::string& location, const std::string& offset = "2",
                           const std::string& length = "8") {
  auto g = graph({node("Identity", {"w"}, {"y"})}, {}, {"y"});
  auto* t = g.add_initializer();
  *t = tensor("w", {8}, onnx::TensorProto::UINT8);
  t->set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
           {"location", location}, {"offset", offset}, {"length", length}}) {
    t->add_external_data()->set_key(key);
    t->mutable_external_data()->rbegin()->set_value(value);
  }
  return model(g).SerializeAsString();
}

std::string first_bytes(const std::filesystem::path& path, std::int64_t offset = 0, std::int64_t count = 4) {
  const Model m = read_model(path);
  return text(weight_bytes(m, m.graph().initializers[0].tensor, offset, count));
}

TEST_CASE("inline") {
  auto g = graph({node("Identity", {"w"}, {"y"})}, {}, {"y"});
  *g.add_initializer() = tensor("w", {8}, onnx::TensorProto::UINT8);
  g.mutable_initializer(0)->set_raw_data("abcdefgh");
  *g.add_initializer() = tensor("stripped", {8});
  const Read r = read(model(g));
  const TensorData& t = r.graph().initializers[0].tensor;
  CHECK(text(weight_bytes(r.model, t, 2, 3)) == "cde");
  CHECK(text(weight_bytes(r.model, t, 7, 1)) == "h");
  CHECK(weight_bytes(r.model, t, 7, 2).empty());
  CHECK(weight_bytes(r.model, t, -1, 2).empty());
  CHECK(weight_bytes(r.model, t, 0, 0).empty());
  CHECK(weight_bytes(r.model, t, std::numeric_limits<std::int64_t>::max(), 2).empty());
  CHECK(weight_bytes(r.model, r.graph().initializers[1].tensor, 0, 4).empty());
}

TEST_CASE("external, in the model's folder or below it") {
  const Folder folder;
  folder.write("w.bin", "..abcdefgh");
  folder.write("sub/w.bin", "..ABCDEFGH");
  CHECK(first_bytes(folder.write("m.onnx", external_model("w.bin"))) == "abcd");
  CHECK(first_bytes(folder.path() / "m.onnx", 6, 2) == "gh");
  CHECK(first_bytes(folder.path() / "m.onnx", 6, 3).empty());  // beyond its length
  CHECK(first_bytes(folder.write("m.onnx", external_model("sub/w.bin"))) == "ABCD");
  CHECK(first_bytes(folder.write("m.onnx", external_model("sub/../w.bin"))) == "abcd");
  CHECK(first_bytes(folder.write("m.onnx", external_model("absent.bin"))).empty());
  CHECK(first_bytes(folder.write("m.onnx", external_model("sub"))).empty());
  CHECK(first_bytes(folder.write("m.onnx", external_model("w.bin", "9999"))).empty());
  CHECK(first_bytes(folder.write("m.onnx", external_model("w.bin", "9223372036854775807")), 4, 4).empty());
  CHECK(first_bytes(folder.write("m.onnx", external_model("w.bin", "-3"))).empty());
}

TEST_CASE("never outside: dots, absolute paths, links") {
  const Folder folder;
  const auto secret = folder.write("secret.bin", "..secret..");
  folder.write("model/w.bin", "..abcdefgh");
  std::filesystem::create_symlink("../secret.bin", folder.path() / "model/link.bin");
  std::filesystem::create_symlink("..", folder.path() / "model/up");
  std::filesystem::create_symlink("w.bin", folder.path() / "model/inside.bin");
  const auto with = [&](const std::string& location) {
    return first_bytes(folder.write("model/m.onnx", external_model(location)));
  };
  CHECK(with("../secret.bin").empty());
  CHECK(with(secret.string()).empty());
  CHECK(with("link.bin").empty());
  CHECK(with("up/secret.bin").empty());
  CHECK(with("inside.bin") == "abcd");
  CHECK(with("up/model/w.bin") == "abcd");
  folder.write("model-other/w.bin", "..secret..");  // a name that only begins like the folder's
  CHECK(with("../model-other/w.bin").empty());
}

TEST_CASE("a download cache links model and data from one folder into another") {
  const Folder folder;
  folder.write("blobs/1", external_model("model.onnx_data"));
  folder.write("blobs/2", "..abcdefgh");
  std::filesystem::create_directories(folder.path() / "snapshot");
  std::filesystem::create_symlink("../blobs/1", folder.path() / "snapshot/model.onnx");
  std::filesystem::create_symlink("../blobs/2", folder.path() / "snapshot/model.onnx_data");
  CHECK(first_bytes(folder.path() / "snapshot/model.onnx") == "abcd");
}

}  // namespace
}  // namespace headroom::test
