// The variables and files that all clients of the S3 protocol read.
#pragma once

#include <initializer_list>
#include <map>
#include <string>

namespace lockstep::store {

/// The first of these variables that is set and not empty; "" if none is.
[[nodiscard]] std::string variable(std::initializer_list<const char*> names);

/// The settings of AWS_PROFILE ("default"), from AWS_CONFIG_FILE (~/.aws/config) and AWS_SHARED_CREDENTIALS_FILE
/// (~/.aws/credentials), of which the second counts more.
[[nodiscard]] std::map<std::string, std::string> profile();

}  // namespace lockstep::store
