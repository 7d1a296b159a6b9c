# cmake -D LIST=file -P WriteBuildId.cmake: writes the source that BuildId.cmake describes.
include(${LIST})
set(TEXT "${SALT}")
foreach(HEADER ${HEADERS})
  file(SHA256 ${SOURCE}/${HEADER} HASH)
  string(APPEND TEXT "\n${HASH} ${HEADER}")
endforeach()
string(SHA256 ID "${TEXT}")
string(SUBSTRING ${ID} 0 16 ID)
file(WRITE ${OUTPUT} "#include \"lockstep/version.hpp\"

namespace lockstep {

const char* build_id() {
  return \"${ID}\";
}

}  // namespace lockstep
")
