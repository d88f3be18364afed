#include "calibration/runner/convolutions.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <array>
#include <chrono>
#include <optional>
#include <vector>

#include "calibration/runner/dispatch.h"
#include "calibration/runner/dtypes.h"

namespace headroom::runner {
namespace {

using c10::IValue;

class Probe {
 public:
  Probe(Dispatch& dispatch, Device& memory, c10::Device device, const ConvProbe& p)
      : dispatch_(dispatch), memory_(memory), device_(device), p_(p) {}

  /// Workspaces of forward, input gradient and weight gradient.
  std::array<std::optional<std::int64_t>, 3> measure() {
    std::array<std::optional<std::int64_t>, 3> out;
    try {
      Dims input{p_.batch, p_.in_channels}, weight{p_.out_channels, p_.in_channels / p_.groups};
      input.insert(input.end(), p_.input.begin(), p_.input.end());
      weight.insert(weight.end(), p_.kernel.begin(), p_.kernel.end());
      slots_ = {tensor(input), tensor(weight), IValue()};
      const SlotId x(0), w(1), y(2);
      const std::vector<Arg> forward{x, w, None{}, p_.stride, p_.padding, p_.dilation, false, Dims{0, 0}, p_.groups};
      out[0] = workspace("aten::convolution", forward, 0, &slots_[2]);
      for (const std::size_t which : {0u, 1u}) {
        const std::vector<Arg> backward{y,
                                        x,
                                        w,
                                        None{},
                                        p_.stride,
                                        p_.padding,
                                        p_.dilation,
                                        false,
                                        Dims{0, 0},
                                        p_.groups,
                                        Dims{which == 0, which == 1, 0}};
        out[which + 1] = workspace("aten::convolution_backward", backward, which, nullptr);
      }
    } catch (const c10::Error&) {  // no kernel, or no memory
    }
    return out;
  }

 private:
  IValue tensor(const Dims& dims) const {
    return at::empty(at::IntArrayRef(dims.data(), dims.size()),
                     at::TensorOptions(scalar_type(p_.dtype)).device(device_),
                     p_.channels_last ? std::optional(c10::MemoryFormat::ChannelsLast) : std::nullopt);
  }

  /// What a call has for itself at its peak, beside the result it gives.
  std::int64_t workspace(const char* op, const std::vector<Arg>& args, std::size_t result, IValue* keep) {
    memory_.reset_peaks();
    const std::int64_t before = memory_.statistics().requested;
    std::vector<IValue> results = dispatch_.call(op, args, slots_);
    const auto made = static_cast<std::int64_t>(results[result].toTensor().nbytes());
    const std::int64_t peak = memory_.statistics().requested_peak;
    if (keep) *keep = std::move(results[result]);
    return peak - before - made;
  }

  Dispatch& dispatch_;
  Device& memory_;
  c10::Device device_;
  const ConvProbe& p_;
  std::vector<IValue> slots_;
};

}  // namespace

void measure_convolutions(const Job& job, Device& device, Report& report) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(job.seconds);
  const c10::Device where = job.device == "cuda" ? c10::Device(c10::kCUDA, 0) : c10::Device(c10::kCPU);
  // Where a card runs short of memory cuDNN takes another kernel; what is cached must not lead there.
  if (job.memory.count() > 0) device.cap(job.memory);
  Dispatch dispatch(where);
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < job.convolutions.size() && std::chrono::steady_clock::now() < end; ++i)
    report.convolution(i, Probe(dispatch, device, where, job.convolutions[i]).measure());
}

}  // namespace headroom::runner
