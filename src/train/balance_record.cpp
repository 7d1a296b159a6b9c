#include "train/balance_record.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/whole_file.hpp"

namespace lockstep::train {

namespace {

std::string path_of(const std::string& run_directory) {
  return run_directory + "/balance.json";
}

}  // namespace

void write_balance_record(const std::string& run_directory, const balance::Record& record) {
  if (record.hosts.empty()) return;
  const nlohmann::ordered_json json{
      {"hosts", record.hosts}, {"workers", record.workers}, {"seconds_per_shard", record.seconds_per_shard}};
  (void)replace_whole_file(path_of(run_directory), json.dump(2) + "\n");
}

balance::Record read_balance_record(const std::string& run_directory) {
  std::ifstream file(path_of(run_directory));
  const auto json = nlohmann::json::parse(file, nullptr, false);
  try {
    return {json.at("hosts"), json.at("workers"), json.at("seconds_per_shard")};
  } catch (const nlohmann::json::exception&) {
    return {};
  }
}

}  // namespace lockstep::train
