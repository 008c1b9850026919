// A batch of names on the device: names in, results out, in order. Shared by all engines of names.
//
// Names lie one after the other in the batch's second part, in one of two forms that say where each ends (`crates/gpu/src/names/form.rs`):
//
//     packed  groups of 32 names: u32 where the group starts, u16 × 32 where each of its names ends from there     2.125 bytes a name
//     ends    u32 where each ends                                                                                  4 bytes a name
//
// A thread a name. The names of a block's threads lie together: where they fit in its shared memory they are brought there in whole
// sectors, each once, and read by words from there; else each thread reads its own through L1. An engine sees neither: it reads a
// `Text`, of which it touches no word that holds no byte of its name.

#pragma once
#include "batch.cuh"

// Names of a group of the packed form.
WS_CONSTANT(names, NAMES_GROUP, 32)
// Names start with it, and components after it.
WS_CONSTANT(names, NAMES_SLASH, '/')

// What a lookup found: a result, 0 for none, and how many bytes of the name matched.
struct Found {
    u32 result, length;
    // A result that may be none, at that length.
    static WS_FN Found at(u32 result, u32 length) { return Found{result, result == 0 ? 0 : length}; }
};

// Bytes `shift` / 8 and after of two words, the first of them in the lower half; `shift` below 32.
WS_FN u32 funnel(u32 low, u32 high, u32 shift) {
#if WS_GPU
    return __funnelshift_r(low, high, shift);
#else
    return u32((u64(high) << 32 | low) >> shift);
#endif
}

// The highest bit of each byte that is a slash. Those above the first may be wrong.
WS_FN u32 slashes_of(u32 word) {
    u32 other = word ^ u32(NAMES_SLASH) * 0x01010101u;
    return (other - 0x01010101u) & ~other & 0x80808080u;
}

// The place of the first slash among four bytes, 4 where there is none.
WS_FN u32 first_slash(u32 word) { return zeros_below(slashes_of(word)) / 8; }

// A word whose first bits are set: all from 32 on.
WS_FN u32 low_bits(u32 bits) {
#if WS_GPU
    u32 mask;
    asm("bmsk.clamp.b32 %0, 0, %1;" : "=r"(mask) : "r"(bits));
    return mask;
#else
    return bits >= 32 ? ~0u : (1u << bits) - 1;
#endif
}

// The first bytes of a word, the others zero.
WS_FN u32 keep_bytes(u32 word, u32 bytes) { return word & low_bits(8 * bytes); }

// Bytes to read, in words: in shared memory, or wherever.
template <bool STAGED>
struct Text {
    const u32* words;
    WS_FN u32 word(u32 at) const {
        if constexpr (STAGED) {
            return words[at];
        } else {
            return element(words + at);
        }
    }
    // The word at a place, 0 where it holds nothing before `end`.
    WS_FN u32 word_before(u32 at, u32 end) const { return at * 4 < end ? word(at) : 0; }
    // Four bytes from `at` on; those from `end` on may be any.
    WS_FN u32 four(u32 at, u32 end) const {
        return funnel(word_before(at / 4, end), word_before(at / 4 + 1, end), at % 4 * 8);
    }
};

// Where names of the packed form start and end.
struct PackedNames {
    struct Group {
        u32 start;
        u16 ends[NAMES_GROUP];
    };
    static WS_FN const Group* group(const Batch& batch, u64 name) {
        return static_cast<const Group*>(batch.keys) + name / NAMES_GROUP;
    }
    static WS_FN u32 start(const Batch& batch, u64 name) {
        u32 at = u32(name % NAMES_GROUP);
        u32 start = element(&group(batch, name)->start);
        return at == 0 ? start : start + element(group(batch, name)->ends + (at - 1));
    }
    static WS_FN u32 end(const Batch& batch, u64 name) {
        return element(&group(batch, name)->start) + element(group(batch, name)->ends + name % NAMES_GROUP);
    }
};

// The same of names with an end each.
struct EndedNames {
    static WS_FN u32 start(const Batch& batch, u64 name) {
        return name == 0 ? 0 : element(static_cast<const u32*>(batch.keys) + name - 1);
    }
    static WS_FN u32 end(const Batch& batch, u64 name) { return element(static_cast<const u32*>(batch.keys) + name); }
};

// Writes what was found: results as wide as the table's, or results with lengths.
template <bool MATCHES>
WS_FN void give(const Batch& batch, u64 name, Found found, u32 result_bytes) {
    if constexpr (MATCHES) {
        static_cast<Vector<u32, 2>*>(batch.results)[name] = Vector<u32, 2>{{found.result, found.length}};
    } else if (result_bytes == 1) {
        static_cast<u8*>(batch.results)[name] = u8(found.result);
    } else if (result_bytes == 2) {
        static_cast<u16*>(batch.results)[name] = u16(found.result);
    } else {
        static_cast<u32*>(batch.results)[name] = found.result;
    }
}

// A whole batch by a whole row of blocks.
template <class Names, bool MATCHES, class Table>
WS_FN void look_up_names(const Block& block, const Batch& batch, const Table& table) {
    u64 tile = block.threads();
    for (u64 first = block.index() * tile; first < batch.count; first += block.count() * tile) {
        u64 past = first + tile < batch.count ? first + tile : batch.count;
        // All of the block's names, from 16 bytes to 16 bytes.
        u32 from = Names::start(batch, first) & ~15u;
        u32 bytes = ((Names::end(batch, past - 1) + 15) & ~15u) - from;
        auto* at = static_cast<const u8*>(batch.low) + from;
        bool staged = bytes <= table.staged;
        // Nobody reads the last tile's any more.
        block.barrier();
        if (staged) stage(block, block.shared<u8>(), at, bytes);
        block.barrier();
        block.each([&](u32 thread) {
            u64 name = first + thread;
            if (name >= past) return;
            u32 start = Names::start(batch, name) - from, end = Names::end(batch, name) - from;
            Found found;
            if (staged) {
                found = table.find(Text<true>{block.shared<u32>()}, start, end);
            } else {
                found = table.find(Text<false>{reinterpret_cast<const u32*>(at)}, start, end);
            }
            give<MATCHES>(batch, name, found, table.result_bytes);
        });
    }
    announce_end(block, batch);
}

// The entry points of a table: NAME_FORM for results and NAME_FORM_matches for results with lengths. A table is a plain struct with
//     find(text, start, end)    the longest prefix of the name from `start` to `end`
//     result_bytes              bytes of a result: 1, 2 or 4
//     staged                    bytes of shared memory for names, 0 to read them where they are
//
// The numbers are of threads that a block may have, and of blocks that are to be held at once.
#define WS_NAMES_IN(name, Table, threads, blocks, form, Names)                                                         \
    WS_KERNEL_HELD(name##_##form, threads, blocks, Batches, batches, Table, table) {                                   \
        look_up_names<Names, false>(block, batches.of_row(block), table);                                              \
    }                                                                                                                  \
    WS_KERNEL_HELD(name##_##form##_matches, threads, blocks, Batches, batches, Table, table) {                         \
        look_up_names<Names, true>(block, batches.of_row(block), table);                                               \
    }
#define WS_NAMES(name, Table, threads, blocks)                                                                         \
    WS_NAMES_IN(name, Table, threads, blocks, packed, PackedNames)                                                     \
    WS_NAMES_IN(name, Table, threads, blocks, ends, EndedNames)
