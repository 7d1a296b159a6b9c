#include <cstdio>

#include "lockstep/version.hpp"

int main() { std::puts(lockstep::version()); }
