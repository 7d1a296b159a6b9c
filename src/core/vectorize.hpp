// LOCKSTEP_VECTORIZED on a function compiles its loops for several instruction sets and picks one at run time.
//
// The bits are the same on each: contraction is off and plain loops are never reassociated. A sum must
// therefore state its own association (see device/cpu/reduce.hpp), or the compiler leaves it scalar.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define LOCKSTEP_VECTORIZED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define LOCKSTEP_VECTORIZED
#endif

// Vectors passed by value would be an ABI question; what is always inlined, as below, has none.
#pragma GCC diagnostic ignored "-Wpsabi"

/// What functions marked LOCKSTEP_VECTORIZED call: it joins them, and so their instruction sets.
#define LOCKSTEP_INLINE inline __attribute__((always_inline))
/// The same for a lambda, after its parameters.
#define LOCKSTEP_INLINE_LAMBDA __attribute__((always_inline))
