// The kernels as a program of this machine: a device whose memory is this process's, driven through pipes.
//
// Requests come on standard input, answers go to standard output; all integers are 64-bit little-endian.
//
//     A bytes               → address              takes memory, each block on its own so that a sanitizer sees its ends
//     F address                                    gives it back
//     W address bytes …                            writes
//     R address bytes       → …                    reads
//     C to from bytes                              copies
//     M length path bytes   → address              maps a file that the other end has mapped too
//     L length name blocks rows threads shared a … b …  runs a kernel; the arguments with their lengths before them
//     N length name         → most threads, bytes of a, bytes of b; all zero where there is no such kernel
//     K                     → length, then lines `module name value` of all constants
//
// What can't be done ends the process with a line on standard error, as a device that is lost.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "../wirespeed.cuh"

namespace host {
struct Known {
    u32 most_threads;
    size_t a, b;
    Entry entry;
};
static std::map<std::string, Known>& kernels() {
    static std::map<std::string, Known> all;
    return all;
}
static std::string& constants() {
    static std::string all;
    return all;
}
void add_kernel(const char* name, u32 most_threads, size_t a, size_t b, Entry entry) {
    if (!kernels().insert({name, Known{most_threads, a, b, entry}}).second) {
        fprintf(stderr, "two kernels of the name %s\n", name);
        exit(3);
    }
}
void add_constant(const char* module, const char* name, u64 value) {
    // A header may be part of several sources.
    std::string line = std::string(module) + " " + name + " " + std::to_string(value) + "\n";
    if (constants().find(line) == std::string::npos) constants() += line;
}
}  // namespace host

static void fail(const char* what) {
    fprintf(stderr, "%s\n", what);
    exit(3);
}
static void take(void* to, size_t bytes) {
    if (bytes != 0 && fread(to, 1, bytes, stdin) != bytes) exit(0);
}
static u64 number() {
    u64 value;
    take(&value, sizeof value);
    return value;
}
static std::string text() {
    std::string value(number(), 0);
    take(&value[0], value.size());
    return value;
}
static void give(const void* from, size_t bytes) {
    if (bytes != 0 && fwrite(from, 1, bytes, stdout) != bytes) exit(0);
}
static void give_number(u64 value) { give(&value, sizeof value); }
static u8* address() { return reinterpret_cast<u8*>(number()); }

static void launch() {
    auto name = text();
    auto found = host::kernels().find(name);
    if (found == host::kernels().end()) fail(("no kernel " + name).c_str());
    u32 blocks = u32(number()), rows = u32(number()), threads = u32(number());
    std::vector<u64> shared((number() + 7) / 8 + 2);
    std::string a = text(), b = text();
    const auto& known = found->second;
    if (threads == 0 || threads > known.most_threads || blocks == 0 || rows == 0) fail((name + ": blocks and threads").c_str());
    if (a.size() != known.a || b.size() != known.b) fail((name + ": arguments of other sizes").c_str());
    // Aligned as the device has it.
    std::vector<u64> a_words((a.size() + 7) / 8), b_words((b.size() + 7) / 8);
    memcpy(a_words.data(), a.data(), a.size());
    memcpy(b_words.data(), b.data(), b.size());
    const void* arguments[2] = {a_words.data(), b_words.data()};
    auto* start = reinterpret_cast<u8*>((reinterpret_cast<u64>(shared.data()) + 15) & ~u64(15));
    for (u32 row = 0; row < rows; row++) {
        for (u32 block = 0; block < blocks; block++) {
            // What one block left there another may not find.
            memset(shared.data(), 0xa5, shared.size() * 8);
            known.entry(Block{block, blocks, row, threads, start}, arguments);
        }
    }
}

int main() {
    static char in[1 << 16], out[1 << 16];
    setvbuf(stdin, in, _IOFBF, sizeof in);
    setvbuf(stdout, out, _IOFBF, sizeof out);
    // Tables of megabytes come through here: the fewer the changes from one process to the other, the better. Where it is refused the
    // pipes stay as they are.
    fcntl(STDIN_FILENO, F_SETPIPE_SZ, 1 << 20);
    fcntl(STDOUT_FILENO, F_SETPIPE_SZ, 1 << 20);
    for (;;) {
        char request;
        take(&request, 1);
        switch (request) {
            case 'A': {
                u64 bytes = number();
                // Aligned as the driver aligns, and not to more than the length: a sanitizer sees the end.
                void* block = nullptr;
                if (posix_memalign(&block, 256, bytes == 0 ? 1 : bytes) != 0) fail("out of memory");
                memset(block, 0xcd, bytes);
                give_number(reinterpret_cast<u64>(block));
                break;
            }
            case 'F': free(address()); break;
            case 'W': {
                u8* to = address();
                take(to, number());
                break;
            }
            case 'R': {
                u8* from = address();
                give(from, number());
                break;
            }
            case 'C': {
                u8* to = address();
                u8* from = address();
                memmove(to, from, number());
                break;
            }
            case 'M': {
                auto path = text();
                u64 bytes = number();
                int file = open(path.c_str(), O_RDWR);
                void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
                if (file < 0 || at == MAP_FAILED) fail("can't map");
                close(file);
                give_number(reinterpret_cast<u64>(at));
                break;
            }
            case 'L': launch(); break;
            case 'N': {
                auto found = host::kernels().find(text());
                bool known = found != host::kernels().end();
                give_number(known ? found->second.most_threads : 0);
                give_number(known ? found->second.a : 0);
                give_number(known ? found->second.b : 0);
                break;
            }
            case 'K':
                give_number(host::constants().size());
                give(host::constants().data(), host::constants().size());
                break;
            default: fail("no such request");
        }
        // Answers wait until there is nothing more to do for the moment.
        if (request == 'A' || request == 'R' || request == 'M' || request == 'N' || request == 'K') fflush(stdout);
    }
}
