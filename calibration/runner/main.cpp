// headroom-runner: one job from standard input (or a file), one measurement on standard output.
#include <c10/util/Exception.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "calibration/job/job.h"
#include "calibration/runner/convolutions.h"
#include "calibration/runner/device.h"
#include "calibration/runner/report.h"
#include "calibration/runner/torch_machine.h"
#include "estimator/base/error.h"

namespace headroom::runner {
namespace {

std::string job_given(int argc, char** argv) {
  if (argc > 2) throw usage_error("usage: headroom-runner [JOB.json]; without a file the job comes on standard input");
  if (argc == 2) {
    std::ifstream in(argv[1], std::ios::binary);
    if (!in) throw bad_input("cannot be read", argv[1]);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

int run(int argc, char** argv) {
  Report report;
  Job job;  // outlives what the report says of it
  try {
    job = read_job(job_given(argc, argv));
    const auto device = open_device(job.device);
    report.start(device->info());
    if (job.convolutions.empty())
      run_job(job, *device, report);
    else
      measure_convolutions(job, *device, report);
    report.end("completed", {});
    return static_cast<int>(Exit::answered);
  } catch (const c10::OutOfMemoryError& e) {
    report.end("out-of-memory", e.what_without_backtrace());
    return static_cast<int>(Exit::answered);
  } catch (const Error& e) {
    report.end("failed", (e.where().empty() ? "" : e.where() + ": ") + std::string(e.what()));
    return static_cast<int>(e.code());
  } catch (const c10::Error& e) {
    report.end("failed", e.what_without_backtrace());
    return static_cast<int>(Exit::internal);
  } catch (const std::exception& e) {
    report.end("failed", e.what());
    return static_cast<int>(Exit::internal);
  }
}

}  // namespace
}  // namespace headroom::runner

int main(int argc, char** argv) {
  const int code = headroom::runner::run(argc, argv);
  // Tensors and threads of PyTorch are not torn down: the answer is given.
  std::cout.flush();
  std::_Exit(code);
}
