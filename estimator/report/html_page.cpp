#include "estimator/report/html_page.h"

#include "estimator/report/escape.h"

namespace headroom::report {
namespace {

/// A colour-blind-safe ramp from pale to deep orange; text stays readable on each step, in the dark as in the light.
constexpr std::string_view style = R"(
:root { color-scheme: light dark; --ink: #1f2328; --dim: #59636e; --line: #d1d9e0; --bad: #b42318; --page: #fff; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --dim: #9198a1; --line: #3d444d; --bad: #ff7b72; --page: #0d1117; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--page); margin: 2rem auto; padding: 0 1.5rem;
  max-width: 75rem; }
h1 { font-size: 1.35rem; margin: 0; overflow-wrap: anywhere; } p { color: var(--dim); margin: .3rem 0; }
figure { margin: 1.6rem 0; overflow-x: auto; } figcaption { font-weight: 600; margin-bottom: .4rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .28rem .6rem; text-align: left; white-space: nowrap; border-bottom: 1px solid var(--line); }
thead th { color: var(--dim); font-weight: 500; } tbody th { font-weight: 500; }
th { max-width: 22rem; overflow: hidden; text-overflow: ellipsis; }
thead tr:last-child th { border-bottom: 2px solid var(--dim); }
.n { text-align: right; } .across { text-align: center; }
h2 { font-size: 1.1rem; margin: 2.2rem 0 .4rem; } h2 ~ p { max-width: 60rem; color: inherit; } ul { padding-left: 1.2rem; } li { margin: .2rem 0; }
pre { background: color-mix(in srgb, var(--line) 35%, transparent); padding: .7rem .9rem; overflow-x: auto; font-size: .85rem; }
svg { max-width: 100%; height: auto; }
@media print { body { margin: 0; max-width: none; font-size: 10pt; } figure, pre, li { break-inside: avoid; } }
.no::after { content: " ✗"; color: var(--bad); font-weight: 700; } .failed { color: var(--dim); white-space: normal; }
.h0, .h1, .h2, .h3, .h4, .h5, .h6, .h7 { color: #1f2328; }
.h0 { background: #fef6ec; } .h1 { background: #fdead2; } .h2 { background: #fddbb1; } .h3 { background: #fdc98d; }
.h4 { background: #fdb66b; } .h5 { background: #fba24e; } .h6 { background: #f78d35; } .h7 { background: #ee7a22; }
.h0.no::after, .h1.no::after, .h2.no::after, .h3.no::after, .h4.no::after, .h5.no::after, .h6.no::after, .h7.no::after {
  color: #7a0b00; }
)";

}  // namespace

std::string html_page(std::string_view title, std::string_view subtitle, std::string_view body) {
  const std::string heading = html_text(title);
  std::string out = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  out += "<meta name=\"viewport\" content=\"width=device-width\">\n<link rel=\"icon\" href=\"data:,\">\n";
  out += "<title>" + heading + "</title>\n<style>" + std::string(style) + "</style>\n</head>\n<body>\n<h1>" + heading +
         "</h1>\n";
  if (!subtitle.empty()) out += "<p>" + html_text(subtitle) + "</p>\n";
  out += body;
  return out + "</body>\n</html>\n";
}

}  // namespace headroom::report
