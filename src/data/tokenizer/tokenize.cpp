#include "data/tokenizer/tokenize.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/digest.hpp"
#include "core/errno_code.hpp"
#include "core/files.hpp"
#include "data/readers/common.hpp"
#include "data/readers/utf8.hpp"
#include "data/tokenizer/text_encoder.hpp"
#include "data/tokenizer/tokenizer_file.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {

namespace {

// A file of tokens that is being written: uint16 or uint32, little-endian.

class TokenFile {
 public:
  /// Opens or creates it, and forgets what is behind the first `tokens` tokens of `width` bytes. Throws
  /// Error(cannot_create) if that fails; the others throw Error(infrastructure).
  TokenFile(std::string path, std::int64_t width, std::int64_t tokens);
  ~TokenFile();
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  void append(const std::vector<std::int32_t>& tokens);
  /// Returns when all is on the disk.
  void flush();
  /// Flushes, and gives the file its name.
  void rename_to(const std::string& path);
  std::int64_t tokens() const { return tokens_; }

 private:
  [[noreturn]] void fail(const char* what) const;
  std::string path_;
  std::int64_t width_, tokens_;
  int file_ = -1;
};

static_assert(std::endian::native == std::endian::little);

TokenFile::TokenFile(std::string path, std::int64_t width, std::int64_t tokens)
    : path_(std::move(path)), width_(width), tokens_(tokens) {
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (file_ >= 0 && ftruncate(file_, tokens * width) == 0 && lseek(file_, 0, SEEK_END) >= 0) return;
  const int error = errno;
  if (file_ >= 0) close(file_);
  throw Error(code_of_errno(error, ExitCode::cannot_create),
              fmt::format("{}: cannot create: {}", path_, std::generic_category().message(error)));
}

TokenFile::~TokenFile() {
  if (file_ >= 0) close(file_);
}

void TokenFile::fail(const char* what) const {
  throw Error(ExitCode::infrastructure,
              fmt::format("{}: cannot {}: {}", path_, what, std::generic_category().message(errno)));
}

void TokenFile::append(const std::vector<std::int32_t>& tokens) {
  std::vector<std::uint16_t> narrow;
  if (width_ == 2) narrow.assign(tokens.begin(), tokens.end());
  auto bytes = width_ == 2 ? std::as_bytes(std::span(narrow)) : std::as_bytes(std::span(tokens));
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write");
    bytes = bytes.subspan(written);
  }
  tokens_ += std::ssize(tokens);
}

void TokenFile::flush() {
  if (fdatasync(file_) != 0) fail("write");
}

void TokenFile::rename_to(const std::string& path) {
  flush();
  if (std::rename(path_.c_str(), path.c_str()) != 0) fail("rename");
}

// A file as memory, to read.

class MappedFile {
 public:
  /// Throws Error(data) if it cannot be read.
  explicit MappedFile(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    const bool known = file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    size_ = known ? static_cast<std::size_t>(status.st_size) : 0;
    if (size_ > 0) memory_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    const int error = errno;
    if (file >= 0) close(file);
    if (known && memory_ != MAP_FAILED) return;
    throw Error(code_of_errno(known || file < 0 ? error : 0, ExitCode::data),
                fmt::format("{}: cannot read: {}", path,
                            file >= 0 && !known ? "not a file" : std::generic_category().message(error)));
  }
  ~MappedFile() {
    if (size_ > 0) munmap(memory_, size_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view text() const { return {static_cast<const char*>(memory_), size_}; }

 private:
  std::size_t size_ = 0;
  void* memory_ = nullptr;
};

using OrderedJson = nlohmann::ordered_json;
namespace fs = std::filesystem;

/// How far a file of tokens is written.
struct TokenizeState {
  std::size_t file = 0, offset = 0;  ///< the next byte of text
  std::int64_t tokens = 0;
  std::int64_t bytes = 0;  ///< of text, in all
};

/// Everything that the tokens depend on, so that only the same work is gone on with.
std::string tokenize_digest(const TokenizeOptions& options, const std::string& tokenizer) {
  Sha256 digest;
  digest.add(fmt::format("tokenize 1\n{}\n{}\n", options.field, options.end));
  digest.add(tokenizer);
  for (const auto& path : options.paths) {
    struct stat status {};
    (void)stat(path.c_str(), &status);
    digest.add(fmt::format("{}\n{} {} {}\n", fs::absolute(path).lexically_normal().string(), status.st_size,
                           status.st_mtim.tv_sec, status.st_mtim.tv_nsec));
  }
  return digest.hex();
}

class Tokenizing {
 public:
  explicit Tokenizing(const TokenizeOptions& options)
      : options_(options),
        text_(read_tokenizer_text(options.tokenizer)),
        tokenizer_(parse_tokenizer(text_, options.tokenizer)),
        encoders_(*tokenizer_),
        digest_(tokenize_digest(options, text_)),
        notes_(options.output + ".partial.json") {
    if (fs::exists(options.output)) {
      throw Error(ExitCode::cannot_create,
                  fmt::format("{}: exists; remove it, or choose another name", options.output));
    }
    if (!options.end.empty() && !tokenizer_->added_token(options.end)) {
      throw Error(ExitCode::usage,
                  fmt::format("--end: expected an added token of {}, found '{}'", options.tokenizer, options.end));
    }
    for (const auto& path : options.paths) all_bytes_ += static_cast<std::int64_t>(MappedFile(path).text().size());
  }

  Tokenized run() {
    state_ = noted_state();
    const std::int64_t resumed = state_.bytes;
    file_.emplace(options_.output + ".partial", token_bytes(tokenizer_->vocabulary()), state_.tokens);
    for (; state_.file < options_.paths.size(); ++state_.file, state_.offset = 0) {
      const std::string& path = options_.paths[state_.file];
      const MappedFile file(path);
      require_utf8(file.text(), path);
      path.ends_with(".jsonl") ? write_lines(file.text(), path) : write_text(file.text());
    }
    write_whole_file(tokenizer_beside(options_.output), text_);
    file_->rename_to(options_.output);
    fs::remove(notes_);
    return {state_.tokens, state_.bytes, resumed, tokenizer_->vocabulary()};
  }

 private:
  static constexpr std::size_t kPiecesAtOnce = 32;

  TokenizeState noted_state() const {
    const OrderedJson json = OrderedJson::parse(read_whole_file(notes_).value_or(""), nullptr, false);
    TokenizeState state;
    std::error_code error;
    try {
      if (json.at("digest") != digest_) return {};
      state = {json.at("file"), json.at("offset"), json.at("tokens"), json.at("bytes")};
    } catch (const OrderedJson::exception&) {
      return {};
    }
    const auto size = fs::file_size(options_.output + ".partial", error);
    const std::uint64_t noted = state.tokens * token_bytes(tokenizer_->vocabulary());
    return error || size < noted ? TokenizeState{} : state;
  }

  void note(std::size_t offset) {
    state_.bytes += static_cast<std::int64_t>(offset - state_.offset);
    state_.offset = offset;
    state_.tokens = file_->tokens();
    if (options_.progress) options_.progress(state_.bytes, all_bytes_);
    const auto now = std::chrono::steady_clock::now();
    if (std::chrono::duration<double>(now - noted_).count() < options_.note_seconds) return;
    noted_ = now;
    file_->flush();
    const OrderedJson json = {{"digest", digest_},
                              {"file", state_.file},
                              {"offset", state_.offset},
                              {"tokens", state_.tokens},
                              {"bytes", state_.bytes}};
    // Without the note a later run begins anew, and writes the same.
    (void)try_write_whole_file(notes_, json.dump());
  }

  void append_around(const std::vector<std::int32_t>& tokens, std::vector<std::int32_t>& out) const {
    out.insert(out.end(), tokens.begin(), tokens.end());
  }
  void append_end(std::vector<std::int32_t>& out) const {
    append_around(tokenizer_->suffix(), out);
    if (!options_.end.empty()) out.push_back(*tokenizer_->added_token(options_.end));
  }

  void write_text(std::string_view text) {
    const std::size_t piece = options_.piece_bytes;
    const bool cuts = tokenizer_->can_cut(text);
    for (std::size_t at = state_.offset; at < text.size();) {
      std::vector<std::int32_t> tokens;
      if (at == 0) append_around(tokenizer_->prefix(), tokens);
      const std::size_t until = std::min(text.size(), at + piece * kPiecesAtOnce);
      at = encode_words(encoders_, text, cuts, at, until, piece, options_.threads, tokens);
      if (at == text.size()) append_end(tokens);
      file_->append(tokens);
      note(at);
    }
  }

  void write_lines(std::string_view text, const std::string& path) {
    const std::size_t piece = options_.piece_bytes;
    const auto line_from = [&](std::size_t at) {
      return std::min(text.find('\n', std::min(at, text.size())), text.size() - 1) + 1;
    };
    for (std::size_t at = state_.offset; at < text.size();) {
      std::vector<std::size_t> ends{at};
      while (ends.size() <= kPiecesAtOnce && ends.back() < text.size()) ends.push_back(line_from(ends.back() + piece));
      std::vector<std::vector<std::int32_t>> tokens(ends.size() - 1);
      parallel_for(tokens.size(), options_.threads,
                   [&](std::size_t i) { encode_lines(text, ends[i], ends[i + 1], path, tokens[i]); });
      for (const auto& some : tokens) file_->append(some);
      at = ends.back();
      note(at);
    }
  }

  void encode_lines(std::string_view all, std::size_t at, std::size_t end, const std::string& path,
                    std::vector<std::int32_t>& out) {
    auto encoder = encoders_.take();
    while (at < end) {
      const std::size_t line_end = std::min(all.find('\n', at), end);
      const std::string_view line = all.substr(at, line_end - at);
      if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
        const std::string text = text_of(
            line, [&] { return fmt::format("{}:{}", path, std::count(all.begin(), all.begin() + at, '\n') + 1); });
        append_around(tokenizer_->prefix(), out);
        encoder->begin(tokenizer_->can_cut(text));
        for (std::size_t word = 0; word < text.size();) word = encoder->next(text, word, out);
        append_end(out);
      }
      at = line_end + 1;
    }
    encoders_.give(std::move(encoder));
  }

  template <class Where>
  std::string text_of(std::string_view line, const Where& where) const {
    const OrderedJson json = OrderedJson::parse(line, nullptr, false);
    if (json.is_object() && json.contains(options_.field) && json[options_.field].is_string()) {
      return json[options_.field].get<std::string>();
    }
    throw Error(ExitCode::data, fmt::format("{}: expected a JSON object with a text \"{}\", found {}", where(),
                                            options_.field, line.substr(0, 60)));
  }

  const TokenizeOptions& options_;
  const std::string text_;
  const std::unique_ptr<const TextTokenizer> tokenizer_;
  Encoders encoders_;
  const std::string digest_, notes_;
  std::int64_t all_bytes_ = 0;
  TokenizeState state_;
  std::optional<TokenFile> file_;
  std::chrono::steady_clock::time_point noted_ = std::chrono::steady_clock::now();
};

}  // namespace

Tokenized tokenize(const TokenizeOptions& options) {
  return Tokenizing(options).run();
}

void detokenize(const std::string& path, std::int64_t first, std::int64_t count,
                const std::function<void(const std::string&)>& take) {
  const std::string beside = tokenizer_beside(path);
  const auto text = read_whole_file(beside);
  if (!text) {
    throw Error(ExitCode::data,
                fmt::format("{}: expected the tokenizer that {} was written with, found none; `lockstep "
                            "data tokenize` puts it there",
                            beside, path));
  }
  const auto tokenizer = parse_tokenizer(*text, beside);
  const MappedFile file(path);
  const std::size_t width = token_bytes(tokenizer->vocabulary());
  const std::size_t all = file.text().size() / width;
  const std::size_t begin = std::min(static_cast<std::size_t>(first), all);
  const std::size_t end = count < 0 ? all : std::min(begin + count, all);
  auto decoder = tokenizer->decoder();
  for (std::size_t i = begin; i < end; ++i) {
    std::uint32_t token = 0;
    file.text().copy(reinterpret_cast<char*>(&token), width, i * width);
    take(decoder.next(token));
  }
}

}  // namespace lockstep::data
