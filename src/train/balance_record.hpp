// balance.json in the run directory: the speeds of the ranks when the newest checkpoint was written. It only speeds up
// the start of a resumed run; one that is missing, damaged or of other ranks is as good as none.
#pragma once

#include <string>

#include "balance/record.hpp"

namespace lockstep::train {

void write_balance_record(const std::string& run_directory, const balance::Record& record);
[[nodiscard]] balance::Record read_balance_record(const std::string& run_directory);

}  // namespace lockstep::train
