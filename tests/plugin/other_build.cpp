// A library that says it is a plugin of another build. Its code must not be called.
#include <cstdlib>

extern "C" const char* lockstep_plugin_build_id() {
  return "0123456789abcdef-libstdc++7";
}

extern "C" void lockstep_plugin_add() {
  std::abort();
}
