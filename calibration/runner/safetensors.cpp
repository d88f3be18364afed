#include "calibration/runner/safetensors.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "estimator/base/error.h"

namespace headroom::runner {
namespace {

constexpr auto names = std::to_array<std::pair<DType, std::string_view>>({{DType::f64, "F64"},
                                                                          {DType::f32, "F32"},
                                                                          {DType::f16, "F16"},
                                                                          {DType::bf16, "BF16"},
                                                                          {DType::i64, "I64"},
                                                                          {DType::i32, "I32"},
                                                                          {DType::i16, "I16"},
                                                                          {DType::i8, "I8"},
                                                                          {DType::u8, "U8"},
                                                                          {DType::b8, "BOOL"}});

DType dtype_called(std::string_view name) {
  for (const auto& [dtype, known] : names)
    if (known == name) return dtype;
  throw bad_input("safetensors: unknown dtype '" + std::string(name) + "'");
}

}  // namespace

StoredTensors read_safetensors(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream buffer;
  buffer << in.rdbuf();
  if (!in) throw bad_input("cannot be read", path);
  const std::string text = std::move(buffer).str();
  std::uint64_t length = 0;
  if (text.size() < sizeof length) throw bad_input("no safetensors file", path);
  std::memcpy(&length, text.data(), sizeof length);
  if (length > text.size() - sizeof length) throw bad_input("no safetensors file", path);
  const std::string_view data = std::string_view(text).substr(sizeof length + length);
  StoredTensors out;
  try {
    const auto header = nlohmann::json::parse(text.substr(sizeof length, length));
    for (const auto& [name, j] : header.items()) {
      if (name == "__metadata__") continue;
      StoredTensor t;
      t.dtype = dtype_called(j.at("dtype").get_ref<const std::string&>());
      for (const auto& n : j.at("shape")) t.dims.push_back(n.get<std::int64_t>());
      const auto begin = j.at("data_offsets").at(0).get<std::uint64_t>(),
                 end = j.at("data_offsets").at(1).get<std::uint64_t>();
      if (begin > end || end > data.size() ||
          static_cast<std::int64_t>(end - begin) != bytes_of(t.dtype, element_count(t.dims)).count())
        throw bad_input("'" + name + "' has other bytes than its shape says", path);
      t.bytes = data.substr(begin, end - begin);
      out.emplace(name, std::move(t));
    }
  } catch (const nlohmann::json::exception& e) {
    throw bad_input("no safetensors file: " + std::string(e.what()), path);
  }
  return out;
}

void write_safetensors(const std::string& path, const StoredTensors& tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::size_t at = 0;
  for (const auto& [name, t] : tensors) {
    std::string_view dtype;
    for (const auto& [known, text] : names)
      if (known == t.dtype) dtype = text;
    header[name] = {{"dtype", dtype},
                    {"shape", std::vector<std::int64_t>(t.dims.begin(), t.dims.end())},
                    {"data_offsets", {at, at + t.bytes.size()}}};
    at += t.bytes.size();
  }
  const std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::uint64_t length = text.size();
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&length), sizeof length) << text;
  for (const auto& [name, t] : tensors) out << t.bytes;
  if (!out.flush()) throw environment_error("cannot be written", path);
}

}  // namespace headroom::runner
