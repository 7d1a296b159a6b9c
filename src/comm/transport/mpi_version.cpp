#include <mpi.h>

#include <cctype>
#include <string>

#include "comm/transport/mpi_session.hpp"

namespace lockstep::comm {

int open_mpi_major() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return 0;  // allowed before MPI is started
  const std::string version(text);
  const auto at = version.find("Open MPI v");
  if (at == std::string::npos) return 0;
  const char digit = version.at(at + 10);
  return std::isdigit(static_cast<unsigned char>(digit)) != 0 ? digit - '0' : 0;
}

}  // namespace lockstep::comm
