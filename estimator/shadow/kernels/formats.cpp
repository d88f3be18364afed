#include "estimator/shadow/kernels/formats.h"

namespace headroom::shadow {

MemoryFormat memory_format(const Args& args, std::size_t i, MemoryFormat fallback) {
  if (!args.given(i) || !args[i].is_text()) return fallback;
  std::string_view text = args.text(i);
  if (text.starts_with("torch.")) text.remove_prefix(6);
  if (text == "contiguous_format") return MemoryFormat::contiguous;
  if (text == "channels_last" || text == "channels_last_3d") return MemoryFormat::channels_last;
  return MemoryFormat::preserve;
}

bool names_host(const Args& args, std::size_t i) {
  return args.given(i) && args[i].is_text() && args.text(i).starts_with("cpu");
}

Tensor empty_in_format(Shadow& m, const Tensor& like, DType dtype, MemoryFormat format) {
  if (dtype == DType::undefined) dtype = like->dtype;
  if (like->host) return m.host_tensor(like->sizes, dtype);
  switch (format) {
    case MemoryFormat::contiguous:
      return m.empty(like->sizes, dtype);
    case MemoryFormat::channels_last:
      return m.empty_strided(like->sizes, channels_last_strides(like->sizes), dtype);
    case MemoryFormat::preserve:
      break;
  }
  return m.empty_like(like, dtype);
}

Tensor empty_beside(Shadow& m, const Tensor& like, const Dims& sizes, DType dtype) {
  if (dtype == DType::undefined) dtype = like->dtype;
  return like->host ? m.host_tensor(sizes, dtype) : m.empty(sizes, dtype);
}

bool in_format(const Tensor& t, MemoryFormat format) {
  switch (format) {
    case MemoryFormat::contiguous:
      return is_contiguous(*t);
    case MemoryFormat::channels_last:
      return is_channels_last(*t);
    case MemoryFormat::preserve:
      break;
  }
  return true;
}

Tensor in_format_of(Shadow& m, const Tensor& t, MemoryFormat format) {
  return in_format(t, format) ? t : empty_in_format(m, t, t->dtype, format);
}

}  // namespace headroom::shadow
