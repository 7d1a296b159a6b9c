// LOCKSTEP_VECTORIZED on a function compiles its loops for several instruction sets and picks one at run time.
//
// All give the same bits: contraction is off and plain loops are never reassociated. A sum must therefore spell out its
// own association (see device/cpu/reduce.hpp), or the compiler leaves it scalar.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define LOCKSTEP_VECTORIZED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define LOCKSTEP_VECTORIZED
#endif

// Passing vectors by value raises an ABI question; functions that are always inlined, as below, avoid it.
#pragma GCC diagnostic ignored "-Wpsabi"

/// For functions called by LOCKSTEP_VECTORIZED ones: they are inlined, and so compiled for the same instruction sets.
#define LOCKSTEP_INLINE inline __attribute__((always_inline))
/// The same for a lambda, after its parameters.
#define LOCKSTEP_INLINE_LAMBDA __attribute__((always_inline))
