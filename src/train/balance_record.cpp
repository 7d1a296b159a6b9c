#include "train/balance_record.hpp"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace lockstep::train {

namespace {

std::string path_of(const std::string& run_directory) {
  return run_directory + "/balance.json";
}

}  // namespace

void write_balance_record(const std::string& run_directory, const balance::Record& record) {
  if (record.hosts.empty()) return;
  const std::string path = path_of(run_directory), fresh = path + ".new";
  {
    std::ofstream file(fresh);
    file << nlohmann::ordered_json{{"hosts", record.hosts},
                                   {"workers", record.workers},
                                   {"seconds_per_shard", record.seconds_per_shard}}
                .dump(2)
         << '\n';
    if (!file.flush()) return;
  }
  (void)std::rename(fresh.c_str(), path.c_str());
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
