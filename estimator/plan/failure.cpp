#include "estimator/plan/failure.h"

#include <exception>
#include <new>

#include "estimator/base/bytes.h"

namespace headroom {

Error current_failure() {
  try {
    throw;
  } catch (const Error& e) {
    return e;
  } catch (const SizeOverflow&) {
    return bad_input("a size does not fit into 64 bits", "", "check the dimensions given");
  } catch (const std::bad_alloc&) {
    return environment_error("this machine ran out of memory", "", "the model or its dimensions are too large");
  } catch (const std::exception& e) {
    return Error(Exit::internal, std::string("a bug of ours: ") + e.what(), "",
                 "please report it with the command and, if you can, the model without its weights");
  }
}

}  // namespace headroom
