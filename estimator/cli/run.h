// run: the program. Results on standard output, everything else on standard error; exit codes as in the contract.
#pragma once

namespace headroom::cli {

int run(int argc, char** argv);

}  // namespace headroom::cli
