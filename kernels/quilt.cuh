// Quilt: `crates/classify/src/quilt`. Layers of merged classes; of each a tuple's hash leads to a slot, whose filter says whether the bucket of
// cells behind it may hold the tuple's key.
//
//     head     of u64: …, L, the layers in use, …
//     layers   where the directory is, the highest rank from here on, mask      16 + 16·B bytes, B = 1, 3 or 4 blocks of 4 words
//     slots    top | filter | form | groups - 1 | group                         8 bytes
//     cells    by groups of four: of each block a of 4 cells, b of 4 cells      128·B bytes
//     ranks    of four cells                                                    32 bytes
//     scan     cells that no layer tells apart, by groups of 16: of each word 16 masks, 16 least numbers, 16 spans; tops and ranks beside it
//
// Counted before it was written. A multiprocessor answers a warp's 32 loads from as many places of the memory in 32 cycles, wherever they
// hit, and from as many places of shared memory in 3 or 4. So a block first brings the records of the layers to its shared memory, and of
// each slot the filter, a byte of eight; then it goes through its tuples without another barrier:
//
//     a layer       shared memory: the record, read by all threads at once; 4 of 8 bits by hash; the slot's filter. Of IPv4 8 operations
//                   for the key, 2 products, 3 for the place, 6 for the filter: about 20; of 12 fields 32. No memory.
//     a candidate   what the filter lets pass. Memory: the slot, 8 bytes. It says where the bucket is, and whether it is above what was
//                   found. About 60 operations, most of them for whose turn it is and the key again.
//     a bucket      memory, after the slot: two ranks at a time, then of each cell whose rank is above what was found 32·B bytes, and
//                   about 30·B operations. 3 reads that wait for each other.
//
// What lookups of traces come to, in order shuffled, as means; reads are a thread's, of up to 16 bytes:
//
//     set                       classes  layers  candidates  buckets  pairs of ranks  cells  reads  sectors of 32 bytes
//     acl1 of 10 K                  103       6         3.3      1.0             2.3    1.7      9                    7
//     fw1 of 10 K                   237       7         2.0      1.6             4.3    4.6     15                   12
//     ipc1 of 10 K                  348      10         3.2      1.5             6.2    7.9     25                   17
//     12 fields, 16 K rules          64       7         1.2      1.2             2.4    1.7     11                   16
//     12 fields, 128 K rules        512      11         1.5      1.4             2.7    1.9     12                   19
//
// Reads alone would let 132 multiprocessors of 1.75 GHz answer 9 to 25 G lookups a second of the first three; but the threads of a warp
// have not as many candidates and cells each. So threads note which of 32 layers pass, a bit each, without a branch; then each goes on to its
// next bucket that may be better, whatever layer and tuple that is of, before all look into these. About 2,500 to 5,000 instructions
// for a warp's 64 tuples of IPv4 are left, two a cycle: 5 to 12 G lookups a second.
//
// Where there are more slots than fit (a directory that ends past them) the filter is read from the slot itself: a read more a layer, none
// of which waits for another.
//
// Scanned cells, which ordinary sets have none of, come after the layers: all threads of a warp read the same four cells at once, about
// 14 operations and less than a read for each word of IPv4 of a cell. Groups whose top is not above what any tuple of a thread found are
// passed over.
//
// Answers are those of the CPU's lookups in any image, also one whose bounds are wrong: layers go by four, and what was found is held
// against the bound of the next four only between them.

#pragma once
#include "tuples.cuh"

WS_CONSTANT(quilt, QUILT_COUNT_AT, 1)
WS_CONSTANT(quilt, QUILT_REST_AT, 1)
WS_CONSTANT(quilt, QUILT_MASK_AT, 2)
WS_CONSTANT(quilt, QUILT_BLOCK, 4)
WS_CONSTANT(quilt, QUILT_LANES, 4)
WS_CONSTANT(quilt, QUILT_GROUP_BITS, 21)
WS_CONSTANT(quilt, QUILT_FORM_SHIFT, 23)
WS_CONSTANT(quilt, QUILT_FILTER_SHIFT, 24)
WS_CONSTANT(quilt, QUILT_LAYERS_AT_ONCE, 4)
WS_CONSTANT(quilt, QUILT_KEYS, 16)
WS_CONSTANT(quilt, QUILT_FILTERS, 64)
WS_CONSTANT(quilt, QUILT_SCAN_AT, 12)
WS_CONSTANT(quilt, QUILT_SCAN_LANES, 16)
WS_CONSTANT(quilt, QUILT_TOPS, 2)

struct Quilt {
    const u64* head;
    const u64* layers;
    const u64* slots;
    const u64* cells;
    const u64* ranks;
    const u64* tops;
    const u32* scan;
    const u64* scan_ranks;
    // What the keys of words that the tuple doesn't have give to every hash.
    u64 padding;
    u32 keys[QUILT_KEYS];
    u32 factor;
    u32 shift;
    // Layers that there is room for in shared memory.
    u32 staged;
    // Slots, from the first on, whose filters are there too; a multiple of four.
    u32 filters;
    // Layers whose candidates are gathered, 32 at most; four where the bounds don't descend, as in no image that an engine made.
    u32 chunk;
    u32 unused;
    // Of each of 64 hashes the bits of a filter, a byte each.
    u32 bits[QUILT_FILTERS / 4];

    // Tuples of a thread: their words are in registers, of which there are 64.
    template <class Tuple>
    static constexpr int N = Tuple::WORDS <= 6 ? 2 : 1;
    // Beside a staged layer's number of bits: its slots' filters aren't all in shared memory.
    static constexpr u32 IS_FAR = 1u << 31;

    template <class Tuple>
    static constexpr u32 BLOCKS = (Tuple::WORDS + int(QUILT_BLOCK) - 1) / int(QUILT_BLOCK);
    // Words of a layer's record.
    template <class Tuple>
    static constexpr u32 RECORD = 2 * (QUILT_MASK_AT + 2 * BLOCKS<Tuple>);

    // Where all is in a block's shared memory.
    struct Staged {
        const u8* bits;
        const u32* records;
        const u8* filters;
        // Layers in use, and those that are here.
        u32 count, here;
    };

    template <class Tuple>
    WS_FN void look_up(const Block& block, const Batch& batch) const {
        Staged shared = stage_all<Tuple>(block);
        block.barrier();
        u64 tile = u64(N<Tuple>) * block.threads();
        block.each([&](u32 thread) {
            for (u64 first = block.index() * tile + thread; first < batch.count; first += block.count() * tile) {
                find<Tuple>(batch, shared, first, block.threads());
            }
        });
    }

    template <class Tuple>
    WS_FN Staged stage_all(const Block& block) const {
        constexpr u32 VECTORS = RECORD<Tuple> / 4;
        u32 count = u32(element(head + QUILT_COUNT_AT)), here = count < staged ? count : staged;
        u32* of_hashes = block.shared<u32>();
        u32* records = of_hashes + QUILT_FILTERS / 4;
        u32* of_slots = records + staged * RECORD<Tuple>;
        block.each([&](u32 thread) {
            for (u32 at = thread; at < QUILT_FILTERS / 4; at += block.threads()) of_hashes[at] = bits[at];
            for (u32 at = thread; at < here * VECTORS; at += block.threads()) {
                auto part = four_elements(words_of(layers) + u64(at) * 4);
                if (at % VECTORS == 0 && u64(part.at[0]) + (1ull << (part.at[1] & 31)) > filters) part.at[1] |= IS_FAR;
                *reinterpret_cast<Vector<u32, 4>*>(records + at * 4) = part;
            }
            WS_UNROLL_4
            for (u32 at = thread; at < filters / 4; at += block.threads()) {
                auto two = four_elements(words_of(slots) + u64(at) * 8), more = four_elements(words_of(slots) + u64(at) * 8 + 4);
                of_slots[at] = filter_of(two.at[0]) | filter_of(two.at[2]) << 8 | filter_of(more.at[0]) << 16 |
                               filter_of(more.at[2]) << 24;
            }
        });
        return Staged{reinterpret_cast<const u8*>(of_hashes), records, reinterpret_cast<const u8*>(of_slots), count, here};
    }

    // A thread's tuples, so many apart.
    template <class Tuple>
    WS_FN void find(const Batch& batch, const Staged& shared, u64 first, u32 apart) const {
        Tuple tuples[N<Tuple>] = {};
        u64 bests[N<Tuple>] = {};
        // A bit for each tuple that a layer may still better.
        u32 live = 0;
        WS_UNROLL
        for (int i = 0; i < N<Tuple>; i++) {
            u64 number = first + u64(i) * apart;
            if (number >= batch.count) continue;
            tuples[i].load(batch, number);
            live |= 1u << i;
        }
        for (u32 layer = 0; layer < shared.count; layer += chunk) {
            u64 rest = rest_of<Tuple>(shared, layer);
            WS_UNROLL
            for (int i = 0; i < N<Tuple>; i++) {
                if (is_over(bests[i], rest)) live &= ~(1u << i);
            }
            if (live == 0) break;
            u32 left = shared.count - layer, passed[N<Tuple>] = {};
            ask<Tuple>(shared, tuples, layer, left < chunk ? left : chunk, passed);
            WS_UNROLL
            for (int i = 0; i < N<Tuple>; i++) passed[i] = (live >> i & 1) != 0 ? passed[i] : 0;
            look<Tuple>(shared, tuples, layer, passed, bests, &live);
        }
        scan_all<Tuple>(tuples, bests);
        WS_UNROLL
        for (int i = 0; i < N<Tuple>; i++) {
            u64 number = first + u64(i) * apart;
            if (number < batch.count) give_number(batch, number, bests[i] == 0 ? 0 : ~u32(bests[i]));
        }
    }

    // Of which of up to 32 layers the filters let tuples pass, a bit each.
    template <class Tuple>
    WS_FN void ask(const Staged& shared, const Tuple* tuples, u32 from, u32 count, u32* passed) const {
        for (u32 at = 0; at < count; at++) {
            u32 layer = from + at, found[N<Tuple>], wanted[N<Tuple>];
            auto record = layer < shared.here ? record_of<Tuple>(shared.records + layer * RECORD<Tuple>)
                                              : record_in_memory<Tuple>(layer);
            u32 places[N<Tuple>];
            WS_UNROLL
            for (int i = 0; i < N<Tuple>; i++) {
                u32 hashed = hash(tuples[i], record.mask);
                wanted[i] = shared.bits[hashed % QUILT_FILTERS];
                places[i] = place_of(hashed, record.bits);
            }
            // The same for all threads.
            if ((record.bits & IS_FAR) == 0) {
                WS_UNROLL
                for (int i = 0; i < N<Tuple>; i++) found[i] = shared.filters[record.base + places[i]];
            } else {
                WS_UNROLL
                for (int i = 0; i < N<Tuple>; i++) found[i] = filter_of(element(slot_at(record.base, places[i])));
            }
            WS_UNROLL
            for (int i = 0; i < N<Tuple>; i++) passed[i] |= u32((found[i] & wanted[i]) == wanted[i]) << at;
        }
    }

    // A bucket that a thread looks into: whose turn it is, with what was found for it, and the low half of the slot.
    template <class Tuple>
    struct Turn {
        Tuple tuple;
        u64 best;
        u32 number, slot;
    };

    // Goes through the buckets of the layers that let tuples pass.
    template <class Tuple>
    WS_FN void look(const Staged& shared, const Tuple* tuples, u32 from, u32* passed, u64* bests, u32* live) const {
        // Whose turn it was and in which four layers.
        u32 entered = ~0u;
        Turn<Tuple> turn;
        // Threads meet where each has a bucket to look into, and not at each slot, most of which are of lower ones.
        while (next<Tuple>(shared, tuples, from, passed, bests, live, &entered, &turn)) {
            u64 best = better(turn);
            WS_UNROLL
            for (int i = 0; i < N<Tuple>; i++) bests[i] = turn.number == u32(i) ? best : bests[i];
        }
    }

    // Finds the next bucket that may have a better cell; whether there is one.
    template <class Tuple>
    WS_FN bool next(const Staged& shared, const Tuple* tuples, u32 from, u32* passed, const u64* bests, u32* live,
                    u32* entered, Turn<Tuple>* turn) const {
        for (;;) {
            turn->tuple = tuples[0];
            turn->best = bests[0];
            turn->number = 0;
            u32 left = passed[0];
            WS_UNROLL
            for (int i = 1; i < N<Tuple>; i++) {
                if (left != 0) continue;
                turn->tuple = tuples[i];
                turn->best = bests[i];
                turn->number = u32(i);
                left = passed[i];
            }
            if (left == 0) return false;
            u32 at = zeros_below(left), four = at / QUILT_LAYERS_AT_ONCE, enters = turn->number << 8 | four;
            left &= left - 1;
            bool is_done = enters != *entered &&
                           is_over(turn->best, rest_of<Tuple>(shared, from + four * u32(QUILT_LAYERS_AT_ONCE)));
            if (is_done) {
                *live &= ~(1u << turn->number);
                left = 0;
            }
            *entered = enters;
            WS_UNROLL
            for (int i = 0; i < N<Tuple>; i++) passed[i] = turn->number == u32(i) ? left : passed[i];
            if (is_done) continue;
            auto record = record_of<Tuple>(record_at<Tuple>(shared, from + at));
            const u32* slot = slot_at(record.base, place_of(hash(turn->tuple, record.mask), record.bits));
            u64 both = element(reinterpret_cast<const u64*>(slot));
            turn->slot = u32(both);
            // No cell of a lower bucket is better than what was found.
            if (u32(both >> 32) >= height_of(turn->best)) return true;
        }
    }

    // The best of what was found and the cells of a bucket that match.
    template <class Tuple>
    WS_FN u64 better(const Turn<Tuple>& turn) const {
        u64 best = turn.best;
        bool is_masks = (turn.slot >> QUILT_FORM_SHIFT & 1) != 0;
        u32 group = turn.slot & ((1u << QUILT_GROUP_BITS) - 1), groups = (turn.slot >> QUILT_GROUP_BITS & 3) + 1;
        // Two cells at a time.
        for (u32 pair = 2 * group; pair < 2 * (group + groups); pair++) {
            auto two = four_elements(words_of(ranks) + u64(pair) * 4);
            const u32* cell = words_of(cells) + (u64(pair / 2) * BLOCKS<Tuple> * (8 * QUILT_LANES) + pair % 2 * 8);
            WS_UNROLL
            for (int i = 0; i < 2; i++) {
                u64 rank = u64(two.at[2 * i + 1]) << 32 | two.at[2 * i];
                if (rank > best && is_match(turn.tuple, cell + i * 4, is_masks)) best = rank;
            }
        }
        return best;
    }

    // Holds tuples against the scanned cells.
    template <class Tuple>
    WS_FN void scan_all(const Tuple* tuples, u64* bests) const {
        u32 groups = u32(element(head + QUILT_SCAN_AT)), live = (1u << N<Tuple>) - 1;
        for (u32 group = 0; group < groups; group++) {
            u64 top = element(tops + u64(group) * QUILT_TOPS), rest = element(tops + u64(group) * QUILT_TOPS + 1);
            // A bit for each tuple that the group may better, and that it or a later one may.
            u32 open = 0;
            WS_UNROLL
            for (int i = 0; i < N<Tuple>; i++) {
                live &= ~(u32(rest <= bests[i]) << i);
                open |= u32(top > bests[i]) << i;
            }
            if (live == 0) break;
            open &= live;
            if (open == 0) continue;
            const u32* cells_here = scan + u64(group) * (Tuple::WORDS * 3 * QUILT_SCAN_LANES);
            const u64* ranks_here = scan_ranks + u64(group) * QUILT_SCAN_LANES;
            for (u32 lane = 0; lane < QUILT_SCAN_LANES; lane += 4) {
                u32 differ = differing<Tuple>(tuples, cells_here + lane);
                WS_UNROLL
                for (int i = 0; i < N<Tuple>; i++) {
                    if ((open >> i & 1) == 0) continue;
                    WS_UNROLL
                    for (int j = 0; j < 4; j++) {
                        if ((differ >> (4 * i + j) & 1) != 0) continue;
                        u64 rank = element(ranks_here + lane + u32(j));
                        if (rank > bests[i]) bests[i] = rank;
                    }
                }
            }
        }
    }

    // Which of four scanned cells each tuple doesn't match, four bits a tuple.
    template <class Tuple>
    static WS_FN u32 differing(const Tuple* tuples, const u32* at) {
        u32 differ = 0;
        WS_UNROLL
        for (int word = 0; word < Tuple::WORDS; word++) {
            const u32* here = at + u32(word) * 3 * QUILT_SCAN_LANES;
            auto masks = four_elements(here), least = four_elements(here + QUILT_SCAN_LANES);
            auto spans = four_elements(here + 2 * QUILT_SCAN_LANES);
            WS_UNROLL
            for (int i = 0; i < N<Tuple>; i++) {
                WS_UNROLL
                for (int j = 0; j < 4; j++) {
                    differ |= u32(!is_in(tuples[i].at[word] & masks.at[j], least.at[j], spans.at[j])) << (4 * i + j);
                }
            }
            // Most are out after a word or two; and no more than a word's elements are to be in registers.
            if (differ == (1u << 4 * N<Tuple>) - 1) break;
        }
        return differ;
    }

    template <class Tuple>
    static WS_FN bool is_match(const Tuple& tuple, const u32* cell, bool is_masks) {
        bool is = true;
        WS_UNROLL
        for (int block = 0; block < int(BLOCKS<Tuple>); block++) {
            const u32* here = cell + block * int(8 * QUILT_LANES);
            auto a = four_elements(here), b = four_elements(here + 4 * QUILT_LANES);
            WS_UNROLL
            for (int i = 0; i < int(QUILT_BLOCK); i++) {
                int word = block * int(QUILT_BLOCK) + i;
                u32 x = word < Tuple::WORDS ? tuple.at[word < Tuple::WORDS ? word : 0] : 0;
                is &= is_masks ? (x & b.at[i]) == a.at[i] : is_in(x, a.at[i], b.at[i]);
            }
            if (!is) return false;
        }
        return is;
    }

    // Whether both halves are a range's: x - a of 16 bits, which wraps, is not above b.
    static WS_FN bool is_in(u32 x, u32 a, u32 b) {
        u32 high = (x & 0xffff0000) - (a & 0xffff0000), low = (x - a) << 16;
        return (high <= b) & (low <= b << 16);
    }

    template <class Tuple>
    struct Record {
        u32 base, bits;
        u32 mask[Tuple::WORDS];
    };

    template <class Tuple>
    static WS_FN Record<Tuple> record_of(const u32* at) {
        auto directory = *reinterpret_cast<const Vector<u32, 2>*>(at);
        Record<Tuple> record = {directory.at[0], directory.at[1], {}};
        WS_UNROLL
        for (int i = 0; i < Tuple::WORDS; i += 4) {
            auto four = *reinterpret_cast<const Vector<u32, 4>*>(at + 2 * QUILT_MASK_AT + i);
            WS_UNROLL
            for (int j = 0; j < 4 && i + j < Tuple::WORDS; j++) record.mask[i + j] = four.at[j];
        }
        return record;
    }

    template <class Tuple>
    WS_FN Record<Tuple> record_in_memory(u32 layer) const {
        auto record = record_of<Tuple>(words_of(layers) + u64(layer) * RECORD<Tuple>);
        record.bits |= IS_FAR;
        return record;
    }

    // A layer's record wherever it is.
    template <class Tuple>
    WS_FN const u32* record_at(const Staged& shared, u32 layer) const {
        return layer < shared.here ? shared.records + layer * RECORD<Tuple>
                                   : words_of(layers) + u64(layer) * RECORD<Tuple>;
    }

    // The highest rank that a rule of this layer or a later one may have.
    template <class Tuple>
    WS_FN u64 rest_of(const Staged& shared, u32 layer) const {
        auto both = *reinterpret_cast<const Vector<u32, 2>*>(record_at<Tuple>(shared, layer) + 2 * QUILT_REST_AT);
        return u64(both.at[1]) << 32 | both.at[0];
    }

    WS_FN u32 height_of(u64 rank) const {
        u64 height = rank >> shift;
        return u32(height >> 32) != 0 ? ~0u : u32(height);
    }

    static WS_FN bool is_over(u64 best, u64 rest) { return best != 0 && best >= rest; }

    template <class Tuple>
    WS_FN u32 hash(const Tuple& tuple, const u32* mask) const {
        u64 sum = padding;
        WS_UNROLL
        for (int i = 0; i < Tuple::WORDS; i += 2) {
            u32 one = (tuple.at[i] & mask[i]) + keys[i], other = keys[i + 1];
            if (i + 1 < Tuple::WORDS) other += tuple.at[i + 1] & mask[i + 1];
            sum = add_product(sum, one, other);
        }
        return u32(sum) ^ u32(sum >> 32);
    }

    // The first bits of 32, as many as a directory has.
    WS_FN u32 place_of(u32 hashed, u32 bits) const {
        u32 product = hashed * factor;
#if WS_GPU
        return __funnelshift_l(product, 0, bits);
#else
        return u32(u64(product) << bits % 32 >> 32);
#endif
    }

    // The two words of a slot, the one with the filter first.
    WS_FN const u32* slot_at(u32 base, u32 place) const { return words_of(slots + base + place); }

    static WS_FN u32 filter_of(u32 low) { return low >> QUILT_FILTER_SHIFT; }

    static WS_FN const u32* words_of(const u64* at) { return reinterpret_cast<const u32*>(at); }
};
