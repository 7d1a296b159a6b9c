// lockstep data tokenize, detokenize: texts to a file of tokens, and back.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/data_words.hpp"
#include "cli/validators.hpp"
#include "core/say.hpp"
#include "data/tokenizer/tokenize.hpp"
#include "lockstep/error.hpp"
#include "observe/telemetry/text.hpp"

namespace lockstep::cli {

namespace {

void show_tokenized(std::int64_t done, std::int64_t all) {
  say("\r{:.0f} of {:.0f} MB{}", done / 1e6, all / 1e6, done == all ? "\n" : "");
}

int tokenize(data::TokenizeOptions& options) {
  if (options.paths.size() < 2) {
    throw Error(ExitCode::usage,
                fmt::format("data tokenize: expected texts and the file to write, found {} argument{}; for example: "
                            "lockstep data tokenize book.txt book.bin --tokenizer tokenizer.json",
                            options.paths.size(), options.paths.size() == 1 ? "" : "s"));
  }
  options.output = options.paths.back();
  options.paths.pop_back();
  if (isatty(STDERR_FILENO) == 1) options.progress = show_tokenized;
  const data::Tokenized written = data::tokenize(options);
  if (written.resumed > 0) {
    fmt::print("went on after {} bytes of text, which an earlier run had done\n", telemetry::grouped(written.resumed));
  }
  fmt::print("wrote {}: {} tokens of {} bytes of text, vocabulary {}; use it with data.train.tokens={}\n",
             options.output, telemetry::grouped(written.tokens), telemetry::grouped(written.bytes),
             telemetry::grouped(written.vocabulary), options.output);
  return 0;
}

struct DetokenizeArguments {
  std::string path;
  std::int64_t first = 0, count = -1;
};

void detokenize(const DetokenizeArguments& arguments) {
  data::detokenize(arguments.path, arguments.first, arguments.count,
                   [](const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); });
}

}  // namespace

void add_data_tokenize(CLI::App& data, Action& run) {
  CLI::App* command = data.add_subcommand("tokenize", "Write the byte-pair tokens of texts as one file.");
  command->footer(
      "The last argument is the file to write; its tokenizer is put beside it, as <file>.tokenizer.json. A text is a "
      "file, or a line of a .jsonl file. What the tokenizer adds to each text, such as <|begin_of_text|>, is added. "
      "When it is interrupted, the same command goes on.\n\nExamples:\n  lockstep data tokenize book.txt book.bin "
      "--tokenizer tokenizer.json\n  lockstep data tokenize corpus/*.jsonl corpus.bin --tokenizer gpt2 --end "
      "'<|endoftext|>'");
  auto options = std::make_shared<data::TokenizeOptions>();
  command->add_option("TEXTS", options->paths, "texts, .jsonl files of texts, and the file to write")->expected(0, -1);
  command
      ->add_option("--tokenizer", options->tokenizer,
                   "a tokenizer.json, or a folder that holds one, or vocab.json and merges.txt")
      ->required();
  command->add_option("--field", options->field, "the entry of a .jsonl file's lines that is the text")
      ->capture_default_str();
  command->add_option("--end", options->end, "an added token to write after each text");
  command->add_option("--threads", options->threads, "threads; 0: as many as this process may use, at most 8")
      ->check(at_least(0))
      ->capture_default_str();
  command->callback([&run, options] { run = [options] { return tokenize(*options); }; });
}

void add_data_detokenize(CLI::App& data, Action& run) {
  CLI::App* command = data.add_subcommand("detokenize", "Print the text of a file that `data tokenize` wrote.");
  command->footer("Example:\n  lockstep data detokenize book.bin --first 1000 --count 200");
  auto arguments = std::make_shared<DetokenizeArguments>();
  command->add_option("FILE", arguments->path, "a file of tokens, with its tokenizer beside it")->required();
  command->add_option("--first", arguments->first, "the first token")->check(at_least(0))->capture_default_str();
  command->add_option("--count", arguments->count, "how many; -1: all")->check(at_least(-1))->capture_default_str();
  command->callback([&run, arguments] { run = [arguments] { return detokenize(*arguments), 0; }; });
}

}  // namespace lockstep::cli
