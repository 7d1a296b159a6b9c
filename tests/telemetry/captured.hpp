// A FILE that stores what is written to it, for tests.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>

class Captured {
 public:
  Captured() : file_(open_memstream(&text_, &size_)) {}
  ~Captured() {
    std::fclose(file_);
    std::free(text_);
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  [[nodiscard]] std::FILE* file() const { return file_; }
  [[nodiscard]] std::function<void(std::string_view)> print() const {
    return [this](std::string_view text) { std::fwrite(text.data(), 1, text.size(), file_); };
  }
  /// Everything written since the last call.
  [[nodiscard]] std::string take() {
    std::fflush(file_);
    std::string text(text_ + taken_, size_ - taken_);
    taken_ = size_;
    return text;
  }

 private:
  char* text_ = nullptr;
  std::size_t size_ = 0, taken_ = 0;
  std::FILE* file_;
};
