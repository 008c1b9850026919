// ESP frames sealed and opened where they lie: AES-GCM (RFC 4106), AES-CTR with HMAC-SHA1-96 (RFC 3686, RFC 2404).
//
//     chunk    │ frame, no tag yet, 0… │ frame … │       each begins at a multiple of 16 bytes
//     frame    │ SPI │ number │ vector (8) │ text … │ tag (16 or 12) │
//              └────────────────── length ──────────┘
//
// Two kernels, one behind the other on a stream, or one where a chunk has no HMAC:
//
//     cipher   a thread a block of 16 bytes, 4 to 32 lanes a frame. Lane l takes the blocks l, l + lanes, …; the hash of a frame is
//              the sum of block × H^(blocks - place), so a lane goes on by H^lanes and ends by a power of its own.
//     sha1     a thread a frame, because each block needs the state behind the one before.
//
// Where a tag is wrong the text becomes zeroes: none of it leaves the device. No time depends on keys or texts: see aes.cuh and
// ghash.cuh, and tags are compared whole.

#pragma once
#include "aes.cuh"
#include "ghash.cuh"
#include "sha1.cuh"

static constexpr u32 ESP_MOST_LANES = 32;
static constexpr u32 ESP_HEADER = 16;

// A security association's keys.
struct alignas(16) EspKeys {
    // Of AES, round by round.
    u32 round_keys[60];
    u32 salt;
    u32 rounds;
    u32 is_gcm;
    // Whether numbers have 64 bits, of which the frame holds half.
    u32 is_extended;
    // AES-GCM: H^1 to H^32. HMAC: the states behind its inner and its outer padding, five words each, and nothing more.
    u32 hash[4 * ESP_MOST_LANES];

    WS_FN Vector<u32, 4> power(u32 exponent) const {
        return reinterpret_cast<const Vector<u32, 4>*>(hash)[exponent - 1];
    }
};

struct EspFrame {
    u32 offset, length;
    // The number of its keys, and the upper half of its sequence number.
    u32 keys, high;
};

struct EspChunk {
    u8* bytes;
    const EspFrame* frames;
    // One byte a frame that is opened: whether its tag is right.
    u8* verdicts;
    u64 count;
};

struct EspWork {
    const EspKeys* keys;
    // T0 of aes.cuh.
    const u32* table;
    // A power of two, 4 to 32.
    u64 lanes;
};

// The bytes of a word that lie before the end: `left` is what is left from its first on.
WS_FN u32 esp_mask(u32 left) {
    return left >= 4 ? ~0u : left == 0 ? 0 : ~0u << (32 - 8 * left);
}

WS_FN u32 esp_behind(u32 left, u32 bytes) { return left > bytes ? left - bytes : 0; }

// Words of a frame: in registers the first byte of each is the highest.
WS_FN void esp_load(u32 (&to)[4], const u8* from) {
    Vector<u32, 4> v = *reinterpret_cast<const Vector<u32, 4>*>(from);
    WS_UNROLL
    for (int w = 0; w < 4; w++) to[w] = aes::swap(v.at[w]);
}

WS_FN void esp_store(u8* to, const u32 (&from)[4]) {
    Vector<u32, 4> v;
    WS_UNROLL
    for (int w = 0; w < 4; w++) v.at[w] = aes::swap(from[w]);
    *reinterpret_cast<Vector<u32, 4>*>(to) = v;
}

// A word of a tag, which lies at any byte.
WS_FN void esp_store_word(u8* to, u32 word) {
    WS_UNROLL
    for (int byte = 0; byte < 4; byte++) to[byte] = u8(word >> (24 - 8 * byte));
}

WS_FN u32 esp_load_word(const u8* from) {
    return u32(from[0]) << 24 | u32(from[1]) << 16 | u32(from[2]) << 8 | from[3];
}

// Encrypts or decrypts a lane's blocks, and writes what it adds to its frame's tag.
template <bool OPENS>
WS_FN void esp_cipher_lane(const aes::Table& table, u8* bytes, EspFrame frame, const EspKeys& keys, u32 lane, u32 lanes,
                           Vector<u32, 4>& added) {
    u32 header[4];
    esp_load(header, bytes);
    u32 text = frame.length - ESP_HEADER;
    u32 blocks = (text + 15) / 16;
    // With AES-GCM a block of what lies beside the text comes first, which takes the counter that encrypts the tag, and one of lengths
    // comes last.
    u32 before = keys.is_gcm;
    u32 all = blocks + 2 * before;
    u32 sum[4] = {0, 0, 0, 0};
    for (u32 place = lane; place < all; place += lanes) {
        bool is_text = place - before < blocks;
        u8* at = bytes + ESP_HEADER + 16 * u64(place - before);
        u32 in[4], stream[4] = {keys.salt, header[2], header[3], place + 1};
        if (is_text || place == 0) aes::encrypt(table, keys.round_keys, keys.rounds, stream);
        if (is_text) {
            esp_load(in, at);
            u32 out[4], left = text - 16 * (place - before);
            WS_UNROLL
            for (int w = 0; w < 4; w++) {
                u32 mask = esp_mask(esp_behind(left, 4 * w));
                // The bytes behind the text are the tag's: they stay.
                out[w] = in[w] ^ (stream[w] & mask);
                in[w] = (OPENS ? in[w] : out[w]) & mask;
            }
            esp_store(at, out);
        } else if (place == 0) {
            in[0] = header[0];
            in[1] = keys.is_extended ? frame.high : header[1];
            in[2] = keys.is_extended ? header[1] : 0;
            in[3] = 0;
            // It waits in its place of shared memory: the hash is not to be multiplied with it.
            added = Vector<u32, 4>{{stream[0], stream[1], stream[2], stream[3]}};
        } else {
            in[0] = in[2] = 0;
            in[1] = keys.is_extended ? 96 : 64;
            in[3] = text * 8;
        }
        if (keys.is_gcm) {
            WS_UNROLL
            for (int w = 0; w < 4; w++) sum[w] ^= in[w];
            u32 to_end = all - place;
            ghash::multiply(sum, keys.power(to_end > lanes ? lanes : to_end));
        }
    }
    WS_UNROLL
    for (int w = 0; w < 4; w++) added.at[w] ^= sum[w];
}

// Encrypts or decrypts all frames, and makes or checks the tags of AES-GCM. Shared memory: the table, then 20 bytes a thread.
template <bool OPENS>
WS_FN void esp_cipher(const Block& block, const EspChunk& chunk, const EspWork& work) {
    u32* table = block.shared<u32>();
    auto* sums = reinterpret_cast<Vector<u32, 4>*>(table + aes::WORDS);
    u32* differences = reinterpret_cast<u32*>(sums + block.threads());
    aes::spread(block, table, work.table);
    block.barrier();
    u32 lanes = u32(work.lanes);
    u32 at_once = block.threads() / lanes;
    for (u64 start = u64(block.index()) * at_once; start < chunk.count; start += u64(block.count()) * at_once) {
        block.each([&](u32 thread) {
            u64 at = start + thread / lanes;
            if (at >= chunk.count) return;
            EspFrame frame = chunk.frames[at];
            const EspKeys& keys = work.keys[frame.keys];
            sums[thread] = Vector<u32, 4>{{0, 0, 0, 0}};
            // A frame whose HMAC is wrong is not decrypted at all.
            if (!OPENS || keys.is_gcm || chunk.verdicts[at] != 0) {
                esp_cipher_lane<OPENS>(aes::Table(table, thread), chunk.bytes + frame.offset, frame, keys, thread % lanes, lanes,
                                       sums[thread]);
            }
        });
        block.barrier();
        // The first four lanes of a frame have a word of the tag each.
        block.each([&](u32 thread) {
            u64 at = start + thread / lanes;
            u32 lane = thread % lanes;
            if (at >= chunk.count || lane >= 4) return;
            EspFrame frame = chunk.frames[at];
            if (!work.keys[frame.keys].is_gcm) return;
            auto* words = reinterpret_cast<const u32*>(sums + (thread - lane)) + lane;
            u32 word = 0;
            for (u32 other = 0; other < lanes; other++) word ^= words[4 * other];
            u8* tag = chunk.bytes + frame.offset + frame.length + 4 * lane;
            if constexpr (OPENS) {
                differences[thread] = word ^ esp_load_word(tag);
            } else {
                esp_store_word(tag, word);
            }
        });
        block.barrier();
        if constexpr (OPENS) {
            block.each([&](u32 thread) {
                u64 at = start + thread / lanes;
                u32 lane = thread % lanes;
                if (at >= chunk.count) return;
                EspFrame frame = chunk.frames[at];
                bool is_gcm = work.keys[frame.keys].is_gcm;
                const u32* words = differences + (thread - lane);
                bool is_right = is_gcm ? (words[0] | words[1] | words[2] | words[3]) == 0 : chunk.verdicts[at] != 0;
                if (is_gcm && lane == 0) chunk.verdicts[at] = is_right;
                if (is_right) return;
                u8* text = chunk.bytes + frame.offset + ESP_HEADER;
                u32 bytes = frame.length - ESP_HEADER;
                for (u32 byte = lane; byte < bytes; byte += lanes) text[byte] = 0;
            });
            block.barrier();
        }
    }
}

// A word of an HMAC's last blocks: what is left of the frame, `end` behind it, zeroes.
WS_FN u32 esp_last_word(const u8* bytes, u32 length, u32 at, u64 end) {
    u32 word = 0;
    if (at < length) word = aes::swap(*reinterpret_cast<const u32*>(bytes + at)) & esp_mask(length - at);
    if (at + 4 > length && at < length + 8) {
        word |= at < length ? u32(end >> 32) >> 8 * (length - at) : u32(end << 8 * (at - length) >> 32);
    }
    return word;
}

// Makes or checks the tags of HMAC-SHA1-96.
template <bool OPENS>
WS_FN void esp_sha1(const EspChunk& chunk, const EspWork& work, u64 at) {
    EspFrame frame = chunk.frames[at];
    const EspKeys& keys = work.keys[frame.keys];
    if (keys.is_gcm) return;
    u8* bytes = chunk.bytes + frame.offset;
    u32 hashed = frame.length + (keys.is_extended ? 4 : 0);
    // The upper half of the number stands behind the frame where it is not in it (RFC 4303, 2.8), and a bit behind all.
    u64 end = keys.is_extended ? u64(frame.high) << 32 | 0x80000000 : u64(0x80000000) << 32;
    u32 blocks = (hashed + 9 + 63) / 64;
    u32 state[5], w[16];
    WS_UNROLL
    for (int i = 0; i < 5; i++) state[i] = keys.hash[i];
    // The block behind the last is that of the outer hash, so that the rounds stand here once.
    for (u32 block = 0; block <= blocks; block++) {
        if (64 * (block + 1) <= frame.length) {
            WS_UNROLL
            for (int four = 0; four < 4; four++) {
                u32 words[4];
                esp_load(words, bytes + 64 * block + 16 * four);
                WS_UNROLL
                for (int i = 0; i < 4; i++) w[4 * four + i] = words[i];
            }
        } else if (block < blocks) {
            WS_UNROLL
            for (int i = 0; i < 16; i++) w[i] = esp_last_word(bytes, frame.length, 64 * block + 4 * i, end);
            if (block + 1 == blocks) w[15] = (64 + hashed) * 8;
        } else {
            WS_UNROLL
            for (int i = 0; i < 5; i++) {
                w[i] = state[i];
                state[i] = keys.hash[5 + i];
            }
            w[5] = 0x80000000;
            WS_UNROLL
            for (int i = 6; i < 15; i++) w[i] = 0;
            w[15] = (64 + 20) * 8;
        }
        sha1::compress(state, w);
    }
    u8* tag = bytes + frame.length;
    u32 difference = 0;
    WS_UNROLL
    for (int i = 0; i < 3; i++) {
        if (OPENS) {
            difference |= state[i] ^ esp_load_word(tag + 4 * i);
        } else {
            esp_store_word(tag + 4 * i, state[i]);
        }
    }
    if (OPENS) chunk.verdicts[at] = difference == 0;
}
