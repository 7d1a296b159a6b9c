// Handle<Traits>: owns one object of a foreign library. Move-only; the destructor destroys the object and never throws.
//
//   struct Traits {
//     using Value = ...;                              // the library's handle; Value{}: none
//     static void destroy(Value value) noexcept;      // reports failures itself: a destructor cannot
//   };
#pragma once

#include <utility>

namespace lockstep {

template <class Traits>
class Handle {
 public:
  using Value = typename Traits::Value;

  Handle() = default;
  explicit Handle(Value value) : value_(value) {}
  Handle(Handle&& other) noexcept : value_(std::exchange(other.value_, Value{})) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) reset(std::exchange(other.value_, Value{}));
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { reset(); }

  Value get() const { return value_; }
  explicit operator bool() const { return value_ != Value{}; }
  /// Gives up ownership without destroying the object.
  [[nodiscard]] Value release() { return std::exchange(value_, Value{}); }
  void reset(Value value = {}) noexcept {
    const Value old = std::exchange(value_, value);
    if (old != Value{}) Traits::destroy(old);
  }

 private:
  Value value_{};
};

}  // namespace lockstep
