// The job of `traffic_matrix.rs`: packets made on the GPU, and counted there by the port that they come from and the result of
// their lookup.
//
// `cargo xtask ptx` builds traffic_matrix.ptx of this file.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// The `n`-th number of a sequence that looks random (splitmix64).
__device__ __forceinline__ u64 number_at(u64 n) {
    n = (n + 1) * 0x9e3779b97f4a7c15ull;
    n = (n ^ (n >> 30)) * 0xbf58476d1ce4e5b9ull;
    n = (n ^ (n >> 27)) * 0x94d049bb133111ebull;
    return n ^ (n >> 31);
}

// Packets `first` to `first + count` of a trace: the destination of each, its length of 40 to 1,500 bytes, and the port that it
// comes from.
extern "C" __global__ void make_packets(u64 first, u64 count, u32 ports, u32* addresses, u16* lengths, u8* from) {
    u64 all = u64(gridDim.x) * blockDim.x;
    for (u64 at = u64(blockIdx.x) * blockDim.x + threadIdx.x; at < count; at += all) {
        u64 n = number_at(first + at);
        addresses[at] = u32(n);
        lengths[at] = u16(40 + (n >> 32) % 1461);
        from[at] = u8((n >> 48) % ports);
    }
}

// Adds each packet to its cell: `columns` cells for each port, one for each result, and the last for all larger results. A block
// counts in shared memory first, 16 bytes a cell, so that few additions meet in the matrix.
extern "C" __global__ void count_packets(const void* results, u32 result_bytes, const u16* lengths, const u8* from, u64 count,
                                         u32 ports, u32 columns, u64* packets, u64* bytes) {
    extern __shared__ u64 block_packets[];
    u32 cells = ports * columns;
    u64* block_bytes = block_packets + cells;
    for (u32 cell = threadIdx.x; cell < cells; cell += blockDim.x) block_packets[cell] = block_bytes[cell] = 0;
    __syncthreads();
    u64 all = u64(gridDim.x) * blockDim.x;
    for (u64 at = u64(blockIdx.x) * blockDim.x + threadIdx.x; at < count; at += all) {
        // As wide as the table's results were in the state that the lookup saw.
        u32 result = result_bytes == 1   ? static_cast<const u8*>(results)[at]
                     : result_bytes == 2 ? static_cast<const u16*>(results)[at]
                                         : static_cast<const u32*>(results)[at];
        u32 cell = from[at] * columns + (result < columns ? result : columns - 1);
        atomicAdd(block_packets + cell, 1ull);
        atomicAdd(block_bytes + cell, u64(lengths[at]));
    }
    __syncthreads();
    for (u32 cell = threadIdx.x; cell < cells; cell += blockDim.x) {
        if (block_packets[cell] == 0) continue;
        atomicAdd(packets + cell, block_packets[cell]);
        atomicAdd(bytes + cell, block_bytes[cell]);
    }
}
