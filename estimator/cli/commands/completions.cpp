// Shell completions, written from the flag table.
#include "estimator/base/error.h"
#include "estimator/base/text.h"
#include "estimator/cli/commands/commands.h"
#include "estimator/cli/output.h"

namespace headroom::cli {
namespace {

std::string long_name(const Flag& f) { return std::string(f.name.substr(0, f.name.find(','))); }

/// "fp32 bf16" of "fp32|bf16|FILE"; empty when the flag has no fixed choices.
std::string choices(const Flag& f) {
  if (f.argument.find('|') == std::string_view::npos) return {};
  std::string out;
  for (const auto c : split(f.argument, '|'))
    if (c[0] < 'A' || c[0] > 'Z') out += (out.empty() ? "" : " ") + std::string(c);
  return out;
}

std::string quoted(std::string_view s) {
  std::string out = "'";
  for (const char c : s) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

/// "'fit --format'|'sweep --format'": where bash meets the flag.
std::string patterns(const Flag& f) {
  std::string out;
  for (const Command& c : commands())
    if (f.on & c.bit) out += (out.empty() ? "" : "|") + quoted(std::string(c.name) + " --" + long_name(f));
  return out;
}

std::string bash() {
  std::string names, options, values;
  for (const Command& c : commands()) {
    names += (names.empty() ? "" : " ") + std::string(c.name);
    std::string mine;
    for (const Flag& f : flags())
      if (f.on & c.bit) mine += (mine.empty() ? "--" : " --") + long_name(f);
    options += "    " + std::string(c.name) + ") options=" + quoted(mine) + " ;;\n";
  }
  for (const Flag& f : flags())
    if (const auto c = choices(f); !c.empty())
      values += "    " + patterns(f) + ") COMPREPLY=($(compgen -W " + quoted(c) + " -- \"$word\")); return ;;\n";
  return "_headroom() {\n"
         "  local word=\"${COMP_WORDS[COMP_CWORD]}\" before=\"${COMP_WORDS[COMP_CWORD-1]}\" options=\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then COMPREPLY=($(compgen -W " +
         quoted(names) +
         " -- \"$word\")); return; fi\n"
         "  case \"${COMP_WORDS[1]} $before\" in\n" +
         values +
         "  esac\n"
         "  case \"${COMP_WORDS[1]}\" in\n" +
         options +
         "  esac\n"
         "  if [[ \"$word\" == -* ]]; then COMPREPLY=($(compgen -W \"$options\" -- \"$word\")); else "
         "COMPREPLY=($(compgen -f -- \"$word\")); fi\n"
         "}\n"
         "complete -o filenames -F _headroom headroom\n";
}

std::string zsh() {
  std::string out = "#compdef headroom\n_headroom() {\n  local -a commands\n  commands=(\n";
  for (const Command& c : commands()) out += "    " + quoted(std::string(c.name) + ":" + std::string(c.summary)) + "\n";
  out += "  )\n  if (( CURRENT == 2 )); then _describe command commands; return; fi\n  case $words[2] in\n";
  for (const Command& c : commands()) {
    out += "    " + std::string(c.name) + ") _arguments";
    for (const Flag& f : flags()) {
      if ((f.on & c.bit) == 0) continue;
      std::string help;
      for (const char ch : f.help)
        if (ch != '[' && ch != ']' && ch != ':') help += ch;
      std::string spec = "--" + long_name(f) + "[" + help + "]";
      if (!f.argument.empty()) {
        const auto c2 = choices(f);
        spec += c2.empty() ? ":value:_files" : ":value:(" + c2 + ")";
      }
      out += " " + quoted(spec);
    }
    out += " '*:file:_files' ;;\n";
  }
  return out + "  esac\n}\n_headroom \"$@\"\n";
}

std::string fish() {
  std::string out = "complete -c headroom -n __fish_use_subcommand -f\n";
  for (const Command& c : commands())
    out +=
        "complete -c headroom -n __fish_use_subcommand -a " + std::string(c.name) + " -d " + quoted(c.summary) + "\n";
  for (const Command& c : commands())
    for (const Flag& f : flags()) {
      if ((f.on & c.bit) == 0) continue;
      out += "complete -c headroom -n '__fish_seen_subcommand_from " + std::string(c.name) + "' -l " + long_name(f);
      if (!f.argument.empty()) out += choices(f).empty() ? " -r" : " -x -a " + quoted(choices(f));
      out += " -d " + quoted(f.help) + "\n";
    }
  return out;
}

}  // namespace

int run_completions(const Options& o) {
  const std::string shell = o.files.empty() ? "" : o.files[0];
  if (shell == "bash")
    write_result(bash(), {});
  else if (shell == "zsh")
    write_result(zsh(), {});
  else if (shell == "fish")
    write_result(fish(), {});
  else
    throw usage_error("headroom completions wants a shell: bash, zsh or fish", "",
                      "for example: headroom completions bash > ~/.local/share/bash-completion/completions/headroom");
  return 0;
}

}  // namespace headroom::cli
