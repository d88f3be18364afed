// The manual page, written from the tables of commands and flags.
#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/cli/commands/commands.h"
#include "estimator/cli/output.h"
#include "estimator/report/escape.h"

namespace headroom::cli {
namespace {

using report::roff_text;

constexpr std::string_view description =
    "headroom answers how much GPU memory a PyTorch model needs for a training step or an inference, and what makes it "
    "fit, from its ONNX file: without a GPU, without PyTorch. The figures are those of "
    "torch.cuda.max_memory_allocated(), of max_memory_reserved() and of nvidia-smi.";

/// Words of a paragraph; `lines` of an example, as they are.
std::string example(std::string_view lines) {
  std::string out = ".EX\n";
  for (const std::string_view line : split(lines, '\n'))
    if (!trim(line).empty()) out += roff_text(trim(line)) + "\n";
  return out + ".EE\n";
}

std::string commands_of(const Flag& f) {
  std::string out;
  unsigned all = 0, here = 0;
  for (const Command& c : commands()) {
    ++all;
    if ((f.on & c.bit) == 0) continue;
    ++here;
    out += (out.empty() ? "" : ", ") + std::string(c.name);
  }
  return here == all ? "all commands" : out;
}

std::string flag_entry(const Flag& f) {
  const auto comma = f.name.find(',');
  std::string out = ".TP\n";
  if (comma != std::string_view::npos) out += "\\fB\\-" + roff_text(f.name.substr(comma + 1)) + "\\fR, ";
  out += "\\fB\\-\\-" + roff_text(f.name.substr(0, comma)) + "\\fR";
  if (!f.argument.empty()) out += " \\fI" + roff_text(f.argument) + "\\fR";
  return out + "\n" + roff_text(f.help) + ".\n.br\n(" + roff_text(commands_of(f)) + ")\n";
}

std::string page() {
  std::string out = ".TH HEADROOM 1 \"\" \"headroom " HEADROOM_VERSION "\" \"User Commands\"\n";
  out += ".SH NAME\nheadroom \\- how much GPU memory a model needs, from its ONNX file\n";
  out += ".SH SYNOPSIS\n\\fBheadroom\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] [\\fIFILES\\fR]\n";
  out += ".SH DESCRIPTION\n" + roff_text(description) + "\n";
  out += ".SH COMMANDS\n";
  for (const Command& c : commands())
    out += ".SS " + roff_text(c.name) + (c.arguments.empty() ? "" : " " + roff_text(c.arguments)) + "\n" +
           roff_text(c.summary) + ".\n" + example(c.examples);
  out += ".SH OPTIONS\n";
  std::string_view group;
  for (const Flag& f : flags()) {
    if (f.group != group) out += ".SS " + roff_text(f.group) + "\n";
    group = f.group;
    out += flag_entry(f);
  }
  out += ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : exit_codes())
    out += ".TP\n.B " + std::to_string(code) + "\n" + roff_text(meaning) + "\n";
  out += ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nNo colours, also on a terminal.\n";
  out +=
      ".SH FILES\n.TP\n.I headroom.toml\nThe scenarios of a repository and their budgets, for \\fBheadroom "
      "check\\fR.\n";
  return out;
}

}  // namespace

int run_man(const Options& o) {
  write_result(page(), o.output);
  return 0;
}

}  // namespace headroom::cli
