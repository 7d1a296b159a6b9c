// A small GPT that trains on a text file.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace lockstep {

// Its head uses the weight of its first layer, so parts share it.
inline constexpr const char* kGpt = R"(
job:
  name: gpt
  model: {gpt: {layers: 3, heads: 2, width: 16, dropout: 0.1}}
  data:
    train: {text: {path: PATH, tokenizer: characters, context: 12}}
    validation: {fraction: 0.2}
  batch_size: 8
  micro_batches: 4
  steps: 6
  metrics: [perplexity]
  optimizer: {adamw: {weight_decay: 0.1}}
  learning_rate: 0.01
  clip_norm: 1
  checkpoint: never
  threads: 1
)";

class TextFile {
 public:
  TextFile() : path_((std::filesystem::temp_directory_path() / "lockstep-text-XXXXXX").string()) {
    close(mkstemp(path_.data()));
    std::ofstream file(path_);
    for (int i = 0; i < 400; ++i) file << "line " << i * i % 97 << (i % 3 == 0 ? ", and so on" : ".") << "\n";
  }
  ~TextFile() { std::filesystem::remove(path_); }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  /// A job that trains on it.
  [[nodiscard]] std::string in(std::string job) const { return job.replace(job.find("PATH"), 4, path_); }

 private:
  std::string path_;
};

}  // namespace lockstep
