// What the program needs of {fmt} besides its headers. Debian and Ubuntu ship that as a shared library only, which a
// static program cannot link; the headers hold the same source.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

// Taken by its address, the inline function is emitted.
[[gnu::used]] std::string (*const vformat_emitted)(fmt::string_view, fmt::format_args) = &fmt::vformat;
