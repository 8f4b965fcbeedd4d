// A torch device "npu" (PrivateUse1) whose memory is the host's: every operation runs on the CPU, on the
// same bytes. Only what the tests need.
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/autocast_mode.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

using at::IntArrayRef;
using at::Tensor;
using c10::Device;
using c10::DeviceIndex;
using c10::Stream;
using c10::SymIntArrayRef;
template <class T>
using Maybe = std::optional<T>;
constexpr auto NPU = c10::DeviceType::PrivateUse1;

namespace {

// ---- devices: how many there are, and which is current

// As CANN reads ASCEND_RT_VISIBLE_DEVICES: ascending numbers, and nothing after the first that is not.
DeviceIndex count_devices() {
  const char* count = std::getenv("FAKE_NPU_COUNT");
  const int there = count ? std::atoi(count) : 8;
  const char* visible = std::getenv("ASCEND_RT_VISIBLE_DEVICES");
  if (!visible) return there;
  DeviceIndex seen = 0;
  long last = -1;
  for (const char* at = visible; *at >= '0' && *at <= '9';) {
    char* end = nullptr;
    const long id = std::strtol(at, &end, 10);
    if (id <= last || id >= there) break;
    last = id;
    ++seen;
    if (*end != ',') break;
    at = end + 1;
  }
  return seen;
}

DeviceIndex device_count() {
  static const DeviceIndex count = count_devices();
  return count;
}

thread_local DeviceIndex current = 0;

DeviceIndex exchange(DeviceIndex index) {
  const DeviceIndex before = current;
  if (index >= 0) current = index;
  return before;
}

// One stream, and nothing to wait for: work is done when the call returns.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = NPU;
  static Stream only(Device device) { return Stream(Stream::DEFAULT, device); }

  c10::DeviceType type() const override { return NPU; }
  Device exchangeDevice(Device d) const override { return {NPU, exchange(d.index())}; }
  Device getDevice() const override { return {NPU, current}; }
  void setDevice(Device d) const override { exchange(d.index()); }
  void uncheckedSetDevice(Device d) const noexcept override { exchange(d.index()); }
  DeviceIndex deviceCount() const noexcept override { return device_count(); }

  Stream getStream(Device d) const override { return only(d); }
  Stream getDefaultStream(Device d) const override { return only(d); }
  Stream getNewStream(Device d, int) const override { return only(d); }
  Stream getStreamFromGlobalPool(Device d, bool) const override { return only(d); }
  Stream exchangeStream(Stream s) const override { return only(s.device()); }
  bool queryStream(const Stream&) const override { return true; }
  void synchronizeStream(const Stream&) const override {}
  void synchronizeDevice(const DeviceIndex) const override {}
  void recordDataPtrOnStream(const c10::DataPtr&, const Stream&) const override {}

  void record(void**, const Stream&, const DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override {}
  void destroyEvent(void*, const DeviceIndex) const noexcept override {}
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

// ---- memory, counted

int64_t allocated = 0, peak = 0;

struct Block {
  void* bytes;
  size_t size;
};

void release(void* context) {
  auto block = static_cast<Block*>(context);
  allocated -= block->size;
  std::free(block->bytes);
  delete block;
}

struct Allocator final : c10::Allocator {
  c10::DataPtr allocate(size_t size) override {
    void* bytes = nullptr;
    if (size && posix_memalign(&bytes, 64, size)) throw std::bad_alloc();
    allocated += size;
    peak = std::max(peak, allocated);
    return {bytes, new Block{bytes, size}, &release, Device(NPU, current)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, std::size_t size) const override { std::memcpy(to, from, size); }
};
Allocator allocator;
REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &allocator);

// The tensor as one of the CPU, sharing its memory and keeping it alive.
Tensor on_host(const Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_privateuseone()) return tensor;
  auto keep = new c10::Storage(tensor.storage());
  c10::DataPtr bytes(
      keep->mutable_data(), keep, [](void* context) { delete static_cast<c10::Storage*>(context); }, c10::kCPU);
  c10::Storage storage(c10::Storage::use_byte_size_t(), keep->nbytes(), std::move(bytes), nullptr, false);
  auto host = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), tensor.dtype());
  host.unsafeGetTensorImpl()->set_sizes_and_strides(tensor.sizes(), tensor.strides(), tensor.storage_offset());
  return host;
}

Tensor on_device(const Tensor& tensor, const Tensor& like) {
  if (!tensor.defined()) return tensor;
  return at::empty(tensor.sizes(), tensor.options().device(like.device())).copy_(tensor);
}

// ---- random numbers, and what torch asks of a backend

struct Generator final : at::CPUGeneratorImpl {
  explicit Generator(DeviceIndex index) : CPUGeneratorImpl(5489) {
    device_ = Device(NPU, index);
    key_set_ = c10::DispatchKeySet(c10::DispatchKey::PrivateUse1);
  }
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return device_count() > 0; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return device_count(); }
  void setCurrentDevice(DeviceIndex index) const override { current = index; }
  DeviceIndex getCurrentDevice() const override { return current; }
  DeviceIndex exchangeDevice(DeviceIndex index) const override { return exchange(index); }
  DeviceIndex maybeExchangeDevice(DeviceIndex index) const override { return exchange(index); }
  at::Allocator* getPinnedMemoryAllocator() const override { return c10::GetCPUAllocator(); }
  Device getDeviceFromPtr(void*) const override { return {NPU, current}; }

  const at::Generator& getDefaultGenerator(DeviceIndex index) const override {
    static const std::vector<at::Generator> all = [] {
      std::vector<at::Generator> made;
      for (DeviceIndex i = 0; i < std::max<DeviceIndex>(device_count(), 1); ++i)
        made.push_back(at::make_generator<Generator>(i));
      return made;
    }();
    return all.at(index < 0 ? current : index);
  }
  at::Generator getNewGenerator(DeviceIndex index) const override {
    return at::make_generator<Generator>(index < 0 ? current : index);
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t size) const override {
    auto bytes = allocator.allocate(size);
    std::memcpy(bytes.get(), storage.data(), std::min(size, storage.nbytes()));
    storage.set_data_ptr_noswap(std::move(bytes));
    storage.set_nbytes(size);
  }
};

// ---- operations that make, view or move tensors; all others fall back to the CPU's

Tensor empty(IntArrayRef sizes, Maybe<at::ScalarType> type, Maybe<at::Layout>, Maybe<Device> device, Maybe<bool>,
             Maybe<at::MemoryFormat> format) {
  const c10::OptionalDeviceGuard guard(device);
  const c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
  return at::detail::empty_generic(sizes, &allocator, keys, c10::dtype_or_default(type), format);
}

Tensor empty_strided(IntArrayRef sizes, IntArrayRef strides, Maybe<at::ScalarType> type, Maybe<at::Layout>,
                     Maybe<Device> device, Maybe<bool>) {
  const c10::OptionalDeviceGuard guard(device);
  const c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
  return at::detail::empty_strided_generic(sizes, strides, &allocator, keys, c10::dtype_or_default(type));
}

Tensor copy_from(const Tensor& from, const Tensor& to, bool) {
  on_host(to).copy_(on_host(from));
  return to;
}

Tensor copy_from_and_resize(const Tensor& from, const Tensor& to) {
  if (to.sizes() != from.sizes()) to.resize_(from.sizes());
  return copy_from(from, to, false);
}

const Tensor& resize_(const Tensor& self, SymIntArrayRef size, Maybe<at::MemoryFormat>) {
  const auto sizes = C10_AS_INTARRAYREF_SLOW(size);
  if (self.sizes() == sizes) return self;
  const size_t needed = (c10::multiply_integers(sizes) + self.storage_offset()) * self.itemsize();
  if (needed > self.storage().nbytes())
    at::detail::getPrivateUse1Hooks().resizePrivateUse1Bytes(self.storage(), needed);
  self.unsafeGetTensorImpl()->set_sizes_contiguous(sizes);
  return self;
}

at::Scalar local_scalar_dense(const Tensor& self) { return at::_local_scalar_dense(on_host(self)); }

Tensor as_strided(const Tensor& self, SymIntArrayRef sizes, SymIntArrayRef strides, Maybe<c10::SymInt> offset) {
  Maybe<int64_t> start;
  if (offset) start = offset->expect_int();
  return at::native::as_strided_tensorimpl(
      self, C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides), start);
}

Tensor view(const Tensor& self, SymIntArrayRef sizes) {
  return at::native::view(self, C10_AS_INTARRAYREF_SLOW(sizes));
}

Tensor reshape_alias(const Tensor& self, SymIntArrayRef sizes, SymIntArrayRef strides) {
  return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides));
}

Tensor& set_part(Tensor& self, at::Storage storage, c10::SymInt offset, SymIntArrayRef size, SymIntArrayRef stride) {
  auto impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(storage));
  if (stride.empty() && !size.empty()) {
    impl->set_sizes_contiguous(C10_AS_INTARRAYREF_SLOW(size));
    impl->set_storage_offset(offset.expect_int());
  } else {
    impl->set_sizes_and_strides(C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), offset.expect_int());
  }
  return self;
}

Tensor& set_storage(Tensor& self, at::Storage storage) {
  const int64_t size = storage.nbytes() / self.itemsize();
  return set_part(self, std::move(storage), 0, c10::fromIntArrayRefSlow({size}), {});
}

Tensor& set_tensor(Tensor& self, const Tensor& other) {
  if (self.is_same(other)) return self;
  return set_part(self, other.storage(), other.storage_offset(), c10::fromIntArrayRefSlow(other.sizes()),
                  c10::fromIntArrayRefSlow(other.strides()));
}

bool same_kind_of_memory(const Tensor&, const Tensor& other) { return other.is_cpu() || other.is_privateuseone(); }

void record_stream(Tensor&, Stream) {}

// torch has no fallback for these two.
Tensor convolution(const Tensor& input, const Tensor& weight, const Maybe<Tensor>& bias, IntArrayRef stride,
                   IntArrayRef padding, IntArrayRef dilation, bool transposed, IntArrayRef output_padding,
                   int64_t groups) {
  Maybe<Tensor> host_bias;
  if (bias && bias->defined()) host_bias = on_host(*bias);
  return on_device(at::convolution(on_host(input), on_host(weight), host_bias, stride, padding, dilation, transposed,
                                   output_padding, groups),
                   input);
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(
    const Tensor& grad, const Tensor& input, const Tensor& weight, IntArrayRef stride, IntArrayRef padding,
    IntArrayRef dilation, bool transposed, IntArrayRef output_padding, int64_t groups, std::array<bool, 3> mask) {
  const std::vector<int64_t> bias_sizes{transposed ? weight.size(1) * groups : weight.size(0)};
  auto [to_input, to_weight, to_bias] = at::convolution_backward(
      on_host(grad), on_host(input), on_host(weight), at::OptionalIntArrayRef(bias_sizes), stride, padding, dilation,
      transposed, output_padding, groups, mask);
  return {on_device(to_input, input), on_device(to_weight, input), on_device(to_bias, input)};
}

// Its schema does not say that it changes the running statistics, so that torch's fallback loses them.
std::tuple<Tensor, Tensor, Tensor> batch_norm(const Tensor& input, const Maybe<Tensor>& weight,
                                              const Maybe<Tensor>& bias, const Maybe<Tensor>& mean,
                                              const Maybe<Tensor>& variance, bool training, double momentum,
                                              double epsilon) {
  const auto host = [](const Maybe<Tensor>& tensor) {
    return tensor && tensor->defined() ? Maybe<Tensor>(on_host(*tensor)) : Maybe<Tensor>();
  };
  auto [output, used_mean, used_deviation] = at::native_batch_norm(
      on_host(input), host(weight), host(bias), host(mean), host(variance), training, momentum, epsilon);
  return {on_device(output, input), on_device(used_mean, input), on_device(used_deviation, input)};
}

// Drawn from the CPU's own generator, so that the numbers are those of a run on the CPU.
using MaybeGenerator = Maybe<at::Generator>;
Tensor& normal_(Tensor& self, double mean, double deviation, MaybeGenerator) {
  on_host(self).normal_(mean, deviation);
  return self;
}
Tensor& uniform_(Tensor& self, double from, double to, MaybeGenerator) {
  on_host(self).uniform_(from, to);
  return self;
}
Tensor& bernoulli_(Tensor& self, double chance, MaybeGenerator) {
  on_host(self).bernoulli_(chance);
  return self;
}

void fallback(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  at::native::cpu_fallback(operation, stack);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("resize_", resize_);
  m.impl("_local_scalar_dense", local_scalar_dense);
  m.impl("as_strided", as_strided);
  m.impl("view", view);
  m.impl("_reshape_alias", reshape_alias);
  m.impl("alias", at::native::alias);
  m.impl("unfold", at::native::unfold);
  m.impl("set_.source_Storage_storage_offset", set_part);
  m.impl("set_.source_Storage", set_storage);
  m.impl("set_.source_Tensor", set_tensor);
  m.impl("_has_compatible_shallow_copy_type", same_kind_of_memory);
  m.impl("record_stream", record_stream);
  m.impl("convolution_overrideable", convolution);
  m.impl("convolution_backward_overrideable", convolution_backward);
  m.impl("native_batch_norm", batch_norm);
  m.impl("normal_", normal_);
  m.impl("uniform_", uniform_);
  m.impl("bernoulli_.float", bernoulli_);
}
TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

// Autocast: what the CPU's casts to half precision, as far as our networks use it.
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  KERNEL_PRIVATEUSEONE(conv2d, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(linear, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(matmul, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(mm, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(addmm, lower_precision_fp)
  KERNEL_PRIVATEUSEONE(bmm, lower_precision_fp)
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  at::RegisterPrivateUse1HooksInterface(new Hooks());
  m.def("on_host", &on_host);
  m.def("device_count", [] { return static_cast<int>(device_count()); });
  m.def("current_device", [] { return static_cast<int>(current); });
  m.def("set_device", [](int index) {
    TORCH_CHECK(index >= 0 && index < device_count(), "invalid device ", index);
    current = index;
  });
  m.def("memory", [] { return std::make_tuple(allocated, peak); });
  m.def("reset_peak", [] { peak = allocated; });
  m.def("default_generator", [](int index) { return at::detail::getPrivateUse1Hooks().getDefaultGenerator(index); });
}
