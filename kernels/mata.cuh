// MATA and ATA: `crates/namelookup/src/aligned`. Input numbers of up to d bytes of a name step from state to state; a state and a number
// give the place of a transition, which holds the number to compare.
//
//     transition   number u32, link u32          link: accepting:1, next state:31; 0 in all bits: vacant
//     state        array above, base below       place = first + (base + number) mod L
//     array        first, L, floor(2^32 / L), halved
//
// A step is one read of 8 bytes anywhere in the table, after the array's record, which lies in L1 as arrays are few. Numbers come from
// names as they are (the paper's MATA), or cut and interleaved by the CPU (MATA-NW), where those of 32 names are one read of a warp.

#pragma once
#include "names.cuh"

WS_CONSTANT(aligned, ALIGNED_ROOT_STATE_AT, 2)
WS_CONSTANT(aligned, ALIGNED_ROOT_RESULT_AT, 3)
WS_CONSTANT(aligned, ALIGNED_ARRAY_WORDS, 4)
WS_CONSTANT(aligned, ALIGNED_ACCEPTING, 1u << 31)

// Input numbers cut from a name without its first slash and with one at its end.
template <class Text>
struct TextNumbers {
    Text text;
    u32 start, at, end, stride;
    WS_FN TextNumbers(const Text& text, u32 start, u32 end, u32 stride)
        : text(text), start(start), at(start + 1), end(end), stride(stride) {}
    WS_FN bool next(u32* number) {
        if (at > end) return false;
        u32 word = text.four(at, end), left = end - at;
        if (left < 4) word = keep_bytes(word, left) | u32(NAMES_SLASH) << 8 * left;
        u32 bytes = first_slash(word) + 1;
        if (bytes > stride) bytes = stride;
        *number = keep_bytes(word, bytes);
        at += bytes;
        return true;
    }
    // Bytes of the name before the slash that was the last byte.
    WS_FN u32 length() const { return at - 1 - start; }
};

// Input numbers of a name among 32.
struct RowNumbers {
    const u32* at;
    const u32* past;
    u32 stride, read;
    WS_FN RowNumbers(const Batch& batch, u64 name, u32 stride) : stride(stride), read(0) {
        auto* first = static_cast<const u32*>(batch.keys) + name / NAMES_GROUP;
        auto* rows = static_cast<const u32*>(batch.low) + name % NAMES_GROUP;
        at = rows + u64(element(first)) * NAMES_GROUP;
        past = rows + u64(element(first + 1)) * NAMES_GROUP;
    }
    WS_FN bool next(u32* number) {
        if (at >= past) return false;
        *number = element(at);
        at += NAMES_GROUP;
        u32 slash = first_slash(*number);
        read += slash < 4 ? slash + 1 : stride;
        return true;
    }
    // The slash at the end is there instead of the one at the start.
    WS_FN u32 length() const { return read; }
};

// A result of 1, 2 or 4 bytes.
WS_FN u32 result_at(const void* results, u64 at, u32 bytes) {
    if (bytes == 1) return element(static_cast<const u8*>(results) + at);
    if (bytes == 2) return element(static_cast<const u16*>(results) + at);
    return element(static_cast<const u32*>(results) + at);
}

struct Mata {
    const u64* transitions;
    const u64* arrays;
    const void* results;
    // What patches change of it is the root's.
    const u64* head;
    u64 slots;
    u32 array_count, stride;
    u32 base_bits, unused;
    u32 result_bytes, staged;

    template <class Text>
    WS_FN Found find(const Text& text, u32 start, u32 end) const {
        return walk(TextNumbers<Text>(text, start, end, stride));
    }

    template <class Numbers>
    WS_FN Found walk(Numbers numbers) const {
        u32 state = u32(element(head + ALIGNED_ROOT_STATE_AT)), length = 0, number;
        u64 last = slots;
        while (state != 0 && numbers.next(&number)) {
            u64 slot;
            u32 link = link_of(state, number, &slot);
            if (link & ALIGNED_ACCEPTING) {
                last = slot;
                length = numbers.length();
            }
            state = link & ~u32(ALIGNED_ACCEPTING);
        }
        if (last == slots) return Found{u32(element(head + ALIGNED_ROOT_RESULT_AT)), 0};
        return Found::at(result_at(results, last, result_bytes), length);
    }

    // The link of a state's transition with a number and its slot; 0 where there is none.
    WS_FN u32 link_of(u32 state, u32 number, u64* slot) const {
        const u64* array = array_of(state);
        if (array == nullptr) return 0;
        if (element(array + 3) != 0) {
            // A state with more transitions than its array takes apart at once: by halves.
            state = look(array, state, number & 0xffff, slot) & ~u32(ALIGNED_ACCEPTING);
            array = array_of(state);
            if (state == 0 || array == nullptr) return 0;
            number >>= 16;
        }
        return look(array, state, number, slot);
    }

    WS_FN const u64* array_of(u32 state) const {
        u32 array = base_bits < 31 ? state >> base_bits : 0;
        return array < array_count ? arrays + u64(array) * ALIGNED_ARRAY_WORDS : nullptr;
    }

    WS_FN u32 look(const u64* array, u32 state, u32 number, u64* slot) const {
        u32 length = u32(element(array + 1));
        // One less than the quotient at worst.
        u32 place = number - u32(u64(number) * element(array + 2) >> 32) * length;
        if (place >= length) place -= length;
        // The base is below the length, and both below 2^31.
        place += state & ((1u << base_bits) - 1);
        if (place >= length) place -= length;
        *slot = element(array) + place;
        if (*slot >= slots) return 0;
        u64 transition = element(transitions + *slot);
        return u32(transition) == number ? u32(transition >> 32) : 0;
    }
};

// Names as rows of input numbers, a thread a name; a warp's are one group.
template <bool MATCHES, class Table>
WS_FN void look_up_rows(const Block& block, const Batch& batch, const Table& table) {
    block.each([&](u32 thread) {
        u64 all = u64(block.count()) * block.threads();
        for (u64 name = u64(block.index()) * block.threads() + thread; name < batch.count; name += all) {
            give<MATCHES>(batch, name, table.walk(RowNumbers(batch, name, table.stride)), table.result_bytes);
        }
    });
    announce_end(block, batch);
}

// The entry points for rows, as WS_NAMES has those for names as they are.
#define WS_NAME_ROWS(name, Table)                                                                                      \
    WS_KERNEL(name##_rows, 1024, Batches, batches, Table, table) {                                                     \
        look_up_rows<false>(block, batches.of_row(block), table);                                                      \
    }                                                                                                                  \
    WS_KERNEL(name##_rows_matches, 1024, Batches, batches, Table, table) {                                             \
        look_up_rows<true>(block, batches.of_row(block), table);                                                       \
    }
