// The page that every HTML report is: one file, no scripts, nothing from elsewhere, in the light and in the dark.
#pragma once

#include <string>
#include <string_view>

namespace headroom::report {

/// `title` and `subtitle` are text, `body` is HTML.
std::string html_page(std::string_view title, std::string_view subtitle, std::string_view body);

}  // namespace headroom::report
