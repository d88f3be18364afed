#include "estimator/read/foreign_files.h"

#include <algorithm>
#include <array>

namespace headroom {
namespace {

using std::literals::operator""sv;

struct Signature {
  std::size_t offset;
  std::string_view magic;
  const char* what;
  const char* hint;
};

constexpr const char* export_it = "export the module with torch.onnx.export";

constexpr std::array<Signature, 12> signatures = {{
    {0, "PK\x03\x04"sv, "a zip archive, maybe a PyTorch checkpoint", export_it},
    {0, "\x80\x02"sv, "a pickle, maybe an old PyTorch checkpoint", export_it},
    {0, "version https://git-lfs"sv, "a Git LFS pointer, not the model itself", "fetch the file: git lfs pull"},
    {0, "GGUF"sv, "a GGUF file", export_it},
    {8, "{\""sv, "a safetensors file", export_it},
    {0, "\x89HDF"sv, "an HDF5 file", "convert it to ONNX"},
    {4, "TFL3"sv, "a TensorFlow Lite file", "convert it to ONNX"},
    {4, "ORTM"sv, "a model in ONNX Runtime's own format", "give the ONNX file it was made from"},
    {0, "\x1f\x8b"sv, "compressed (gzip)", "unpack it"},
    {0,
     "\xfd"
     "7zXZ"sv,
     "compressed (xz)", "unpack it"},
    {0, "<!DOCTYPE"sv, "an HTML page", "the download went wrong: fetch the file again"},
    {0, "<html"sv, "an HTML page", "the download went wrong: fetch the file again"},
}};

bool is_text(std::string_view bytes) {
  const std::string_view start = bytes.substr(0, 4096);
  return std::all_of(start.begin(), start.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 ? byte != 0x7F : byte == '\t' || byte == '\n' || byte == '\r';
  });
}

}  // namespace

ForeignFile recognise(std::string_view bytes) {
  for (const Signature& s : signatures)
    if (bytes.size() > s.offset && bytes.substr(s.offset).starts_with(s.magic)) return {s.what, s.hint};
  if (is_text(bytes)) return {"a text file", "headroom reads ONNX's binary form, as torch.onnx.export writes it"};
  return {};
}

}  // namespace headroom
