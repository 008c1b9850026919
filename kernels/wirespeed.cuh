// What every kernel is written with: one source for two compilers.
//
// NVRTC compiles a kernel for the GPU. The host's C++ compiler compiles the same lines for the tests, where a block's threads
// run one after another:
//
//     WS_KERNEL(name, 1024, A, a, B, b) {       two plain structs by value, `block` beside them
//         block.each([&](u32 thread) { … });    what each thread of the block does up to the next barrier
//         block.barrier();
//         block.each([&](u32 thread) { … });    nothing but shared memory lives from one part to the next
//     }
//
// There are no warp intrinsics and no atomics here, so that order between threads never matters within a part.

#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define WS_GPU 1
#define WS_FN __device__ __forceinline__
#define WS_UNROLL _Pragma("unroll")
#define WS_UNROLL_4 _Pragma("unroll 4")
#else
#define WS_GPU 0
#include <cstddef>
#include <cstdint>
#include <cstring>
#define WS_FN inline
#define WS_UNROLL
#define WS_UNROLL_4
#endif

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// A number of elements that are loaded or stored at once, 2 to 16 bytes in all.
template <class T, int N>
struct alignas(sizeof(T) * N) Vector {
    T at[N];
};

#if WS_GPU

// A block of threads: its index in its row, the number of blocks of a row, the row's number, the number of threads of a block.
struct Block {
    WS_FN u32 index() const { return blockIdx.x; }
    WS_FN u32 count() const { return gridDim.x; }
    WS_FN u32 row() const { return blockIdx.y; }
    WS_FN u32 threads() const { return blockDim.x; }
    template <class F>
    WS_FN void each(F part) const {
        part(threadIdx.x);
    }
    WS_FN void barrier() const { __syncthreads(); }
    // The block's shared memory, as much as the launch asked for.
    template <class T>
    WS_FN T* shared() const {
        extern __shared__ __align__(16) u8 ws_shared[];
        return reinterpret_cast<T*>(ws_shared);
    }
};

#define WS_KERNEL(name, most_threads, A, a, B, b)                                                                      \
    WS_KERNEL_IN(name, __launch_bounds__(most_threads), A, a, B, b)
// The same where so many blocks at least are to be held at once, which leaves each all the registers that there are then: without that the
// compiler may go below and spill.
#define WS_KERNEL_HELD(name, most_threads, least_blocks, A, a, B, b)                                                   \
    WS_KERNEL_IN(name, __launch_bounds__(most_threads, least_blocks), A, a, B, b)
#define WS_KERNEL_IN(name, bounds, A, a, B, b)                                                                         \
    static WS_FN void name##_body(const Block& block, const A& a, const B& b);                                         \
    extern "C" __global__ void bounds                                                                                  \
        name(const __grid_constant__ A a, const __grid_constant__ B b) {                                               \
        name##_body(Block(), a, b);                                                                                    \
    }                                                                                                                  \
    static WS_FN void name##_body(const Block& block, const A& a, const B& b)

// A constant that the layout in Rust has too; the host build tells the tests its value.
#define WS_CONSTANT(module, name, value) static constexpr u64 name = (value);

// An element of a table, through the read-only path and kept in L1.
template <class T>
WS_FN T element(const T* at) {
    return __ldg(at);
}

// Where `wanted`, an element of a table, of 4 bytes at most, and elsewhere what it would be otherwise: one load under a
// predicate, where an `if` may become a branch for each key.
template <class T>
WS_FN u32 element_if(bool wanted, const T* at, u32 otherwise) {
    u32 v = otherwise;
#define WS_LOAD_IF(load)                                                                                               \
    asm("{.reg .pred p; setp.ne.u32 p, %2, 0; @p " load " %0, [%1];}" : "+r"(v) : "l"(at), "r"(u32(wanted)))
    if constexpr (sizeof(T) == 1) {
        WS_LOAD_IF("ld.global.nc.u8");
    } else if constexpr (sizeof(T) == 2) {
        WS_LOAD_IF("ld.global.nc.u16");
    } else {
        WS_LOAD_IF("ld.global.nc.u32");
    }
#undef WS_LOAD_IF
    return v;
}

// The same of 8 bytes in shared memory.
WS_FN Vector<u32, 2> staged_if(bool wanted, const Vector<u32, 2>* at, Vector<u32, 2> otherwise) {
    Vector<u32, 2> v = otherwise;
    // Volatile, so that it stays behind the barrier.
    asm volatile("{.reg .pred p; setp.ne.u32 p, %3, 0; @p ld.shared.v2.u32 {%0, %1}, [%2];}"
                 : "+r"(v.at[0]), "+r"(v.at[1])
                 : "r"(u32(__cvta_generic_to_shared(at))), "r"(u32(wanted)));
    return v;
}

// What is read once: keys. They pass L1 by, which is the table's.
WS_FN uint4 stream16(const void* at) {
    uint4 v;
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at));
    return v;
}
WS_FN uint2 stream8(const void* at) {
    uint2 v;
    asm("ld.global.nc.L1::no_allocate.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(at));
    return v;
}
WS_FN u32 stream4(const void* at) {
    u32 v;
    asm("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(at));
    return v;
}

template <class T, int N>
WS_FN Vector<T, N> stream(const T* at) {
    Vector<T, N> v;
    static_assert(sizeof(v) == 4 || sizeof(v) == 8 || sizeof(v) == 16, "one load");
    if constexpr (sizeof(v) == 16) {
        *reinterpret_cast<uint4*>(&v) = stream16(at);
    } else if constexpr (sizeof(v) == 4) {
        *reinterpret_cast<u32*>(&v) = stream4(at);
    } else {
        *reinterpret_cast<uint2*>(&v) = stream8(at);
    }
    return v;
}

// What is written once: results. One store, said as such: the compiler may make several of a plain assignment.
template <class T, int N>
WS_FN void store(T* at, const Vector<T, N>& v) {
    if constexpr (sizeof(v) == 16) {
        auto words = *reinterpret_cast<const uint4*>(&v);
        asm volatile("st.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(at), "r"(words.x), "r"(words.y), "r"(words.z), "r"(words.w)
                     : "memory");
    } else if constexpr (sizeof(v) == 8) {
        auto words = *reinterpret_cast<const uint2*>(&v);
        asm volatile("st.global.v2.u32 [%0], {%1,%2};" ::"l"(at), "r"(words.x), "r"(words.y) : "memory");
    } else if constexpr (sizeof(v) == 4) {
        *reinterpret_cast<u32*>(at) = *reinterpret_cast<const u32*>(&v);
    } else {
        *reinterpret_cast<Vector<T, N>*>(at) = v;
    }
}

// Writes a mark for whoever polls `at`, in this memory or the host's, and sees with it all that the block's threads had written
// before their last barrier: the fence is for what this thread knows of, not for its own writes alone.
WS_FN void announce(u32* at, u32 mark) {
    __threadfence_system();
    *static_cast<volatile u32*>(at) = mark;
}

#else

struct Block {
    u32 index_, count_, row_, threads_;
    u8* shared_;
    u32 index() const { return index_; }
    u32 count() const { return count_; }
    u32 row() const { return row_; }
    u32 threads() const { return threads_; }
    template <class F>
    void each(F part) const {
        for (u32 thread = 0; thread < threads_; thread++) part(thread);
    }
    void barrier() const {}
    template <class T>
    T* shared() const {
        return reinterpret_cast<T*>(shared_);
    }
};

namespace host {
// A kernel as the server calls it: its arguments as a launch passes them.
typedef void (*Entry)(const Block&, const void* const*);
void add_kernel(const char* name, u32 most_threads, size_t a, size_t b, Entry entry);
void add_constant(const char* module, const char* name, u64 value);
struct Kernel {
    Kernel(const char* name, u32 most_threads, size_t a, size_t b, Entry entry) {
        add_kernel(name, most_threads, a, b, entry);
    }
};
struct Constant {
    Constant(const char* module, const char* name, u64 value) { add_constant(module, name, value); }
};
}  // namespace host

#define WS_KERNEL(name, most_threads, A, a, B, b)                                                                      \
    static void name##_body(const Block& block, const A& a, const B& b);                                               \
    static host::Kernel name##_kernel(                                                                                 \
        #name, most_threads, sizeof(A), sizeof(B), [](const Block& block, const void* const* arguments) {              \
            name##_body(block, *static_cast<const A*>(arguments[0]), *static_cast<const B*>(arguments[1]));            \
        });                                                                                                            \
    static void name##_body([[maybe_unused]] const Block& block, const A& a, const B& b)
#define WS_KERNEL_HELD(name, most_threads, least_blocks, A, a, B, b) WS_KERNEL(name, most_threads, A, a, B, b)

#define WS_CONSTANT(module, name, value)                                                                               \
    static constexpr u64 name = (value);                                                                               \
    static host::Constant name##_constant(#module, #name, value);

template <class T>
inline T element(const T* at) {
    return *at;
}

template <class T>
inline u32 element_if(bool wanted, const T* at, u32 otherwise) {
    return wanted ? *at : otherwise;
}

inline Vector<u32, 2> staged_if(bool wanted, const Vector<u32, 2>* at, Vector<u32, 2> otherwise) {
    return wanted ? *at : otherwise;
}

template <class T, int N>
inline Vector<T, N> stream(const T* at) {
    return *reinterpret_cast<const Vector<T, N>*>(at);
}

template <class T, int N>
inline void store(T* at, const Vector<T, N>& v) {
    *reinterpret_cast<Vector<T, N>*>(at) = v;
}

// Whoever polls may be another process.
inline void announce(u32* at, u32 mark) {
    __atomic_store_n(at, mark, __ATOMIC_RELEASE);
}

#endif

// How many bits below the first that is set are not; 32 where none is.
WS_FN u32 zeros_below(u32 bits) {
#if WS_GPU
    return u32(__clz(int(__brev(bits))));
#else
    return bits == 0 ? 32 : u32(__builtin_ctz(bits));
#endif
}

WS_FN u32 zeros_below(u64 bits) {
    return u32(bits) != 0 ? zeros_below(u32(bits)) : 32 + zeros_below(u32(bits >> 32));
}

// All of an array into shared memory, by all threads of the block. Whole words of 16 bytes, both ends aligned to them.
WS_FN void stage(const Block& block, void* shared, const void* from, u32 bytes) {
    block.each([&](u32 thread) {
        auto* to = static_cast<Vector<u32, 4>*>(shared);
        auto* source = static_cast<const Vector<u32, 4>*>(from);
        // Several loads under way.
        WS_UNROLL_4
        for (u32 at = thread; at < bytes / 16; at += block.threads()) to[at] = source[at];
    });
}
