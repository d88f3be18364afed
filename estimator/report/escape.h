// Escape: names from files as text that a format leaves alone. One function a format; all go through `printable`, so
// control characters, escape sequences and right-to-left marks are visible text everywhere.
#pragma once

#include <string>
#include <string_view>

namespace headroom::report {

/// RFC 4180 quoting; a leading = + - @ is kept from being a formula by a quote in front.
std::string csv_field(std::string_view s);
/// Text that Markdown and the HTML inside it leave alone.
std::string markdown_text(std::string_view s);
/// Text of an HTML or SVG element, or of a quoted attribute.
std::string html_text(std::string_view s);
/// Text of a LaTeX document, for any engine: characters that pdfLaTeX's default fonts lack are named (U+4E2D).
std::string latex_text(std::string_view s);
/// Text of a man page.
std::string roff_text(std::string_view s);

}  // namespace headroom::report
