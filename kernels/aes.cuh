// AES (FIPS 197) for counter mode: a thread encrypts a block of 16 bytes.
//
// A round is read from a table of 256 words, T0 of the Rijndael proposal, which holds a byte's substitution times the first column of
// MixColumns; the other three columns are its rotations. Tables in a cache leak keys by the time that reads take. This one lies in
// shared memory, which has no cache, and there once for each of the 32 banks:
//
//     bank      0      1     …     31
//     byte 0  T0[0]  T0[0]   …   T0[0]     lane i of a warp reads bank i and no other,
//     byte 1  T0[1]  T0[1]   …   T0[1]     so 32 reads are one pass, whichever bytes they are of
//     …
//
// So a read takes the same time for all keys and all texts, and the table costs 32 KB of a block's shared memory.

#pragma once
#include "wirespeed.cuh"

namespace aes {

static constexpr u32 BANKS = 32;
static constexpr u32 WORDS = 256 * BANKS;

WS_FN u32 swap(u32 v) { return v << 24 | (v & 0xff00) << 8 | (v >> 8 & 0xff00) | v >> 24; }

template <int BITS>
WS_FN u32 right(u32 v) {
    return v >> BITS | v << (32 - BITS);
}

// Writes the table once for each bank; by all threads of the block.
WS_FN void spread(const Block& block, u32* to, const u32* table) {
    block.each([&](u32 thread) {
        for (u32 at = thread; at < WORDS; at += block.threads()) to[at] = element(table + at / BANKS);
    });
}

// The table as a thread sees it.
struct Table {
    const u32* bank;

    WS_FN Table(const u32* spread, u32 thread) : bank(spread + thread % BANKS) {}
    WS_FN u32 at(u32 byte) const { return bank[byte * BANKS]; }

    // A column behind a round, of the columns that its bytes come from.
    WS_FN u32 mixed(u32 a, u32 b, u32 c, u32 d) const {
        return at(a >> 24) ^ right<8>(at(b >> 16 & 255)) ^ right<16>(at(c >> 8 & 255)) ^ right<24>(at(d & 255));
    }
    // The substitution alone stands in the middle bytes of T0.
    WS_FN u32 last(u32 a, u32 b, u32 c, u32 d) const {
        return (at(a >> 24) << 16 & 0xff000000) ^ (at(b >> 16 & 255) & 0xff0000) ^ (at(c >> 8 & 255) & 0xff00) ^
               (at(d & 255) >> 8 & 0xff);
    }
};

// Encrypts a block of four words, the first byte of each the highest.
WS_FN void encrypt(const Table& table, const u32* keys, u32 rounds, u32 (&s)[4]) {
    auto* key = reinterpret_cast<const Vector<u32, 4>*>(keys);
    Vector<u32, 4> k = key[0];
    WS_UNROLL
    for (int w = 0; w < 4; w++) s[w] ^= k.at[w];
    u32 t[4];
    for (u32 round = 1; round < rounds; round++) {
        k = key[round];
        WS_UNROLL
        for (int w = 0; w < 4; w++) t[w] = table.mixed(s[w], s[(w + 1) & 3], s[(w + 2) & 3], s[(w + 3) & 3]) ^ k.at[w];
        WS_UNROLL
        for (int w = 0; w < 4; w++) s[w] = t[w];
    }
    k = key[rounds];
    WS_UNROLL
    for (int w = 0; w < 4; w++) t[w] = table.last(s[w], s[(w + 1) & 3], s[(w + 2) & 3], s[(w + 3) & 3]) ^ k.at[w];
    WS_UNROLL
    for (int w = 0; w < 4; w++) s[w] = t[w];
}

}  // namespace aes
