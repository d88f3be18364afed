#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string_view>

#include "tests/recover/cases.h"

/// `test_recover --write` writes the expected programs anew; without it they are compared.
int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--write") {
    for (const auto& name : headroom::test::case_names())
      std::ofstream(headroom::test::expected_file(name)) << describe(headroom::test::recovered(name));
    return 0;
  }
  return doctest::Context(argc, argv).run();
}
