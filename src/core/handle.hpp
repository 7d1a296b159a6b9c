// Handle<Traits>: owns one object of a foreign library. Move-only; the destructor destroys and never throws.
//
//   struct Traits {
//     using Value = ...;                              // what the library hands out; Value{} is none
//     static void destroy(Value value) noexcept;      // reports a failure, for who can a destructor tell?
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

  [[nodiscard]] Value get() const { return value_; }
  explicit operator bool() const { return value_ != Value{}; }
  /// Gives the object up without destroying it.
  [[nodiscard]] Value release() { return std::exchange(value_, Value{}); }
  void reset(Value value = {}) noexcept {
    const Value old = std::exchange(value_, value);
    if (old != Value{}) Traits::destroy(old);
  }

 private:
  Value value_{};
};

}  // namespace lockstep
