#include "data/readers/table_text.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <iconv.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "core/words.hpp"
#include "data/archive.hpp"
#include "data/archive_input.hpp"
#include "data/unpack.hpp"
#include "lockstep/error.hpp"

namespace lockstep::data {
namespace {

using namespace std::string_view_literals;

constexpr std::array kPackedMarks = {"BZh"sv,
                                     "\xFD"
                                     "7zXZ\0"sv,
                                     "\x28\xB5\x2F\xFD"sv};
constexpr std::array kArchiveMarks = {"PK\3\4"sv, "7z\xBC\xAF\x27\x1C"sv};
constexpr std::array kPackedEndings = {".gz", ".bz2", ".xz", ".zst", ".zip", ".7z"};

template <class Marks>
bool begins_with_one(std::string_view text, const Marks& marks) {
  return std::any_of(marks.begin(), marks.end(), [text](std::string_view mark) { return text.starts_with(mark); });
}

std::string unpack_text(const std::string& path, const ByteCounter& counter) {
  ArchiveInput input(path, counter);
  const UnpackLimits limits;
  const UnpackBudget budget(path, input.size(), limits);
  const ArchiveHandle handle(archive_read_new());
  LOCKSTEP_CHECK(handle != nullptr, "libarchive");
  support_compressions(handle.get());
  archive_read_support_format_raw(handle.get());
  archive_entry* entry = nullptr;
  std::string text;
  std::string block(std::size_t{1} << 16, '\0');
  bool sound = input.open(handle.get()) && archive_read_next_header(handle.get(), &entry) == ARCHIVE_OK;
  while (sound) {
    const auto got = archive_read_data(handle.get(), block.data(), block.size());
    if (got == 0) return text;
    sound = got > 0;
    if (sound) text.append(block, 0, got);
    budget.check(text.size());
    if (text.size() > limits.held_without_copy) refuse_to_hold(path, limits, "");
  }
  input.rethrow();
  const char* reason = archive_error_string(handle.get());
  throw Error(ExitCode::data,
              fmt::format("{}: damaged compressed file: {}", path, reason != nullptr ? reason : "no reason given"));
}

[[noreturn]] void refuse_no_table(const std::string& path, std::string_view found) {
  throw Error(ExitCode::data, fmt::format("{}: expected a CSV or Parquet file, found {}; write it as one of these, as "
                                          "pandas' to_csv and to_parquet do",
                                          path, found));
}

std::string only_member(const std::string& path, const ByteCounter& counter) {
  const auto tree = open_tree(path, counter);
  for (const auto& file : tree->files()) {
    if (file.name.starts_with("xl/")) refuse_no_table(path, "an Excel workbook");
    if (file.name == "content.xml") refuse_no_table(path, "a workbook of LibreOffice");
  }
  if (tree->files().size() != 1) {
    throw Error(ExitCode::data, fmt::format("{}: expected an archive of one file, found {}; unpack it, and name the "
                                            "files as a list or a glob",
                                            path, tree->files().size()));
  }
  std::vector<std::byte> scratch;
  const auto& file = tree->files().front();
  const auto bytes = tree->read(file, 0, file.size, scratch);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct TextEncoding {
  std::string_view mark;
  const char* name;
};

/// The longer marks first: one of UTF-32 begins as one of UTF-16 does.
constexpr std::array kEncodings = {TextEncoding{"\xFF\xFE\0\0"sv, "UTF-32LE"},
                                   TextEncoding{"\0\0\xFE\xFF"sv, "UTF-32BE"}, TextEncoding{"\xFF\xFE"sv, "UTF-16LE"},
                                   TextEncoding{"\xFE\xFF"sv, "UTF-16BE"}};

std::string in_utf8(std::string text, const TextEncoding& from, const std::string& path) {
  const iconv_t converter = ::iconv_open("UTF-8", from.name);
  LOCKSTEP_CHECK(converter != reinterpret_cast<iconv_t>(-1), "iconv");  // NOLINT: what the library returns
  char* in = text.data() + from.mark.size();
  std::size_t left = text.size() - from.mark.size();
  std::string out(left * 2, '\0');  // 3 bytes for 2 at most
  char* to = out.data();
  std::size_t room = out.size();
  const bool failed = ::iconv(converter, &in, &left, &to, &room) == static_cast<std::size_t>(-1);
  ::iconv_close(converter);
  if (failed) throw Error(ExitCode::data, fmt::format("{}: damaged {}, at byte {}", path, from.name, in - text.data()));
  out.resize(out.size() - room);
  return out;
}

}  // namespace

std::string read_packed_text(const std::string& path, const ByteCounter& counter) {
  const auto bytes = read_whole(File(path, counter));
  std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (begins_with_one(text, kPackedMarks)) return unpack_text(path, counter);
  return begins_with_one(text, kArchiveMarks) ? only_member(path, counter) : text;
}

void require_rows(std::string_view bytes, const std::string& path) {
  struct Kind {
    std::string_view mark, name;
  };
  static constexpr std::array kKinds = {Kind{"\xD0\xCF\x11\xE0"sv, "an Excel workbook (.xls)"},
                                        Kind{"ARROW1"sv, "a Feather or Arrow file"},
                                        Kind{"FEA1"sv, "a Feather file"},
                                        Kind{"ORC"sv, "an ORC file"},
                                        Kind{"Obj\1"sv, "an Avro file"},
                                        Kind{"SQLite format 3"sv, "an SQLite database"},
                                        Kind{"\x89HDF"sv, "an HDF5 file"},
                                        Kind{"\x93NUMPY"sv, "a NumPy file"},
                                        Kind{"\x80\4\x95"sv, "a pickle of Python"},
                                        Kind{"\x80\5\x95"sv, "a pickle of Python"},
                                        Kind{"RDX"sv, "a file of R (.RData)"},
                                        Kind{"\x89PNG"sv, "an image"},
                                        Kind{"\xFF\xD8\xFF"sv, "an image"},
                                        Kind{"\4\"M\x18"sv, "an LZ4 file"},
                                        Kind{"%PDF"sv, "a PDF file"}};
  for (const auto& [mark, name] : kKinds) {
    if (bytes.starts_with(mark)) refuse_no_table(path, name);
  }
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  const auto next = [&bytes] {
    bytes.remove_prefix(std::min(bytes.find_first_not_of(" \t\r\n"), bytes.size()));
    const char c = bytes.empty() ? '\0' : bytes.front();
    bytes.remove_prefix(bytes.empty() ? 0 : 1);
    return c;
  };
  const char first = next(), second = next();
  const bool object = first == '{' && (second == '"' || second == '}');
  if (object || (first == '[' && (second == '{' || second == '['))) refuse_no_table(path, "JSON");
  if (first == '<' && (second == '!' || second == '?' || second == 'h' || second == 't'))
    refuse_no_table(path, "HTML or XML");
}

std::string as_utf8(std::string text, const std::string& path) {
  for (const TextEncoding& encoding : kEncodings) {
    if (text.starts_with(encoding.mark)) return in_utf8(std::move(text), encoding, path);
  }
  if (const auto at = text.find('\0'); at != std::string::npos) {
    throw Error(ExitCode::data, fmt::format("{}: expected text, found byte 0 at {}; if it is UTF-16, write it with a "
                                            "byte order mark, or as UTF-8",
                                            path, at));
  }
  return text;
}

std::string kind_of_ending(const std::string& path) {
  std::string name = lower_case(std::filesystem::path(path).filename().string());
  for (const char* packed : kPackedEndings) {
    if (name.ends_with(packed)) name.resize(name.size() - std::string_view(packed).size());
  }
  return std::filesystem::path(name).extension().string();
}

}  // namespace lockstep::data
