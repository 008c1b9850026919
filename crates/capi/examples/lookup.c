/* Routes, names and rules looked up from C. Takes a folder for its files. Ends with 0 if every answer is right. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wirespeed.h"

#define IPV4(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

/* Ends the program where something is not as it must be. */
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            const char *why = ws_last_error();                                                     \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, why ? why : "-");   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define OK(call) MUST((call) == WS_STATUS_OK)

static const char *folder;

/* The path of a file in the folder. */
static const char *in_folder(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "w");
    MUST(file != NULL);
    fputs(text, file);
    fclose(file);
}

/* Routes with numbers of our own, as in a forwarder. */
static void numbers(void)
{
    const ws_options options = {.size = sizeof options, .engine = "fold", .prefix_lookups = 1};
    ws_table *table = ws_table_new(&options);
    MUST(table != NULL);
    ws_reader *reader = ws_table_reader(table);
    MUST(reader != NULL);

    const uint8_t net6[16] = {0x20, 0x01, 0x0d, 0xb8};
    OK(ws_table_insert4(table, IPV4(10, 0, 0, 0), 8, 1));
    OK(ws_table_insert6(table, net6, 32, 6));
    ws_route changes[3] = {
        {.address = {10, 1}, .next_hop = 2, .family = 4, .depth = 16},
        {.address = {10, 1, 2}, .next_hop = 3, .family = 4, .depth = 24},
        {.address = {10, 1, 2}, .next_hop = 0, .family = 4, .depth = 24}, /* out again */
    };
    OK(ws_table_apply(table, changes, 3));
    size_t count = 0;
    OK(ws_table_len(table, &count));
    MUST(count == 3);

    /* More than a block of the library, and its end. */
    enum { MANY = 5000 };
    uint32_t *ips = malloc(MANY * sizeof *ips);
    uint64_t *next_hops = malloc(MANY * sizeof *next_hops);
    uint32_t *narrow = malloc(MANY * sizeof *narrow);
    uint8_t *depths = malloc(MANY);
    MUST(ips && next_hops && narrow && depths);
    for (uint32_t n = 0; n < MANY; n++)
        ips[n] = n % 3 == 0 ? IPV4(10, 1, n / 256, n % 256) : n % 3 == 1 ? IPV4(10, 2, 0, 1) : IPV4(11, 0, 0, 1);
    OK(ws_lookup_bulk(reader, ips, next_hops, MANY));
    for (uint32_t n = 0; n < MANY; n++)
        MUST(next_hops[n] == (n % 3 == 0 ? 2 : n % 3 == 1 ? 1 : 0));
    OK(ws_lookup_bulk32(reader, ips, narrow, MANY));
    OK(ws_lookup_prefix_bulk(reader, ips, next_hops, depths, MANY));
    for (uint32_t n = 0; n < MANY; n++) {
        MUST(next_hops[n] == narrow[n]);
        MUST(depths[n] == (n % 3 == 0 ? 16 : n % 3 == 1 ? 8 : 0));
    }

    const uint8_t ips6[2][16] = {{0x20, 0x01, 0x0d, 0xb8, [15] = 1}, {0x20, 0x01, 0x0d, 0xb9}};
    uint8_t depths6[2];
    OK(ws_lookup6_bulk(reader, ips6, next_hops, 2));
    MUST(next_hops[0] == 6 && next_hops[1] == 0);
    OK(ws_lookup6_prefix_bulk(reader, ips6, next_hops, depths6, 2));
    MUST(next_hops[0] == 6 && depths6[0] == 32 && next_hops[1] == 0 && depths6[1] == 0);

    OK(ws_table_remove4(table, IPV4(10, 1, 0, 0), 16));
    OK(ws_table_remove6(table, net6, 32));
    ws_table_free(table); /* the reader keeps the last state */
    uint64_t one = 0;
    OK(ws_lookup(reader, IPV4(10, 1, 0, 1), &one));
    MUST(one == 1);
    ws_reader_free(reader);
    free(ips);
    free(next_hops);
    free(narrow);
    free(depths);
}

/* Routes of a file, whose next hops are texts; and an image. */
static void labels(void)
{
    write_file("routes.txt", "10.0.0.0/8 core\n2001:db8::/32 edge\n");
    ws_table *table = ws_table_open(in_folder("routes.txt"), NULL);
    MUST(table != NULL);
    OK(ws_table_insert_label(table, "10.9.0.0/16", "lab"));
    OK(ws_table_insert4(table, IPV4(10, 8, 0, 0), 16, 2)); /* a label's number */
    OK(ws_table_save(table, in_folder("routes.img")));

    ws_reader *live = ws_table_reader(table), *saved = ws_reader_open(in_folder("routes.img"));
    MUST(live != NULL && saved != NULL);
    const uint32_t ips[4] = {IPV4(10, 0, 0, 1), IPV4(10, 8, 0, 1), IPV4(10, 9, 0, 1), IPV4(11, 0, 0, 1)};
    const char *const expected[4] = {"core", "edge", "lab", NULL};
    ws_reader *const readers[2] = {live, saved};
    for (int r = 0; r < 2; r++) {
        uint64_t found[4];
        OK(ws_lookup_bulk(readers[r], ips, found, 4));
        for (int n = 0; n < 4; n++) {
            const char *label = ws_reader_label(readers[r], found[n]);
            MUST(expected[n] == NULL ? label == NULL : label != NULL && strcmp(label, expected[n]) == 0);
        }
    }

    /* Another file takes the place of all routes. A label keeps its number and its text its place. */
    uint64_t before, after;
    OK(ws_lookup(live, ips[0], &before));
    const char *core = ws_reader_label(live, before);
    write_file("routes.txt", "10.0.0.0/7 core\n");
    OK(ws_table_load(table, in_folder("routes.txt")));
    OK(ws_lookup(live, ips[3], &after));
    MUST(after == before && ws_reader_label(live, after) == core && strcmp(core, "core") == 0);
    OK(ws_table_forget_labels(table));
    MUST(ws_reader_label(live, after) == core && ws_reader_label(live, 2) == NULL);

    ws_table *opened = ws_table_open(in_folder("routes.img"), NULL);
    MUST(opened != NULL);
    OK(ws_table_insert_label(opened, "2001:db8:1::/48", "branch"));
    size_t count;
    OK(ws_table_len(opened, &count));
    MUST(count == 5);
    ws_table_free(opened);
    ws_table_free(table);
    MUST(strcmp(ws_reader_label(live, after), "core") == 0);
    ws_reader_free(live);
    ws_reader_free(saved);
}

static void names(void)
{
    write_file("names.txt", "www.parc.com web\nexample.org org\n");
    ws_names *names = ws_names_open(in_folder("names.txt"), NULL);
    MUST(names != NULL);
    OK(ws_names_insert_label(names, WS_NAME_FORM_DOMAIN, "*.parc.com", "parc"));
    OK(ws_names_remove(names, WS_NAME_FORM_DOMAIN, "example.org"));
    ws_name_reader *reader = ws_names_reader(names);
    MUST(reader != NULL);
    const char *const asked[4] = {"ftp.parc.com", "a.www.parc.com", "example.org", "parc.org"};
    const char *const expected[4] = {"parc", "web", NULL, NULL};
    uint64_t found[4];
    OK(ws_lookup_names_bulk(reader, WS_NAME_FORM_DOMAIN, asked, found, 4));
    for (int n = 0; n < 4; n++) {
        const char *label = ws_name_reader_label(reader, found[n]);
        MUST(expected[n] == NULL ? label == NULL : label != NULL && strcmp(label, expected[n]) == 0);
    }
    OK(ws_names_save(names, in_folder("names.img")));
    ws_name_reader *saved = ws_name_reader_open(in_folder("names.img"));
    MUST(saved != NULL);
    uint64_t again[4];
    OK(ws_lookup_names_bulk(saved, WS_NAME_FORM_DOMAIN, asked, again, 4));
    MUST(memcmp(found, again, sizeof found) == 0);
    write_file("names.txt", "parc.org other\n");
    OK(ws_names_load(names, in_folder("names.txt")));
    OK(ws_names_forget_labels(names));
    OK(ws_lookup_names_bulk(reader, WS_NAME_FORM_DOMAIN, asked, found, 4));
    MUST(found[0] == 0 && strcmp(ws_name_reader_label(reader, found[3]), "other") == 0);
    ws_name_reader_free(saved);
    ws_name_reader_free(reader);
    ws_names_free(names);

    write_file("names.csv", "id,site,kind,risk\n1,parc.com,shop,3\n2,example.org,ads,\n");
    const ws_options columns = {.size = sizeof columns, .name_column = "site", .value_columns = "risk,kind"};
    names = ws_names_open(in_folder("names.csv"), &columns);
    MUST(names != NULL);
    reader = ws_names_reader(names);
    OK(ws_lookup_names_bulk(reader, WS_NAME_FORM_DOMAIN, asked, found, 4));
    MUST(strcmp(ws_name_reader_label(reader, found[0]), "risk=3,kind=shop") == 0 && found[3] == 0);
    ws_name_reader_free(reader);
    ws_names_free(names);

    ws_names *faces = ws_names_new(NULL);
    MUST(faces != NULL);
    OK(ws_names_insert(faces, WS_NAME_FORM_NDN, "ndn:/com", 4));
    const ws_name_change changes[2] = {{"/com/parc", 9}, {"/org", 0}};
    OK(ws_names_apply(faces, WS_NAME_FORM_COMPONENTS, changes, 2));
    size_t count;
    OK(ws_names_len(faces, &count));
    MUST(count == 2);
    reader = ws_names_reader(faces);
    const char *const interests[2] = {"/com/parc/v", "/com/parcel"};
    OK(ws_lookup_names_bulk(reader, WS_NAME_FORM_COMPONENTS, interests, found, 2));
    MUST(found[0] == 9 && found[1] == 4);
    ws_name_reader_free(reader);
    ws_names_free(faces);
}

static void rules(void)
{
    write_file("rules.v4",
               "*filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n-A INPUT -i lo -j ACCEPT\n"
               "-A INPUT -s 192.0.2.0/24 -p tcp --dport 443 -j ACCEPT\nCOMMIT\n");
    const ws_options options = {.size = sizeof options, .assume = "ct=new,in=eth0"};
    MUST(ws_rules_open(in_folder("rules.v4"), WS_TUPLE_IPV4, NULL) == NULL); /* of which interface? */
    ws_rules *rules = ws_rules_open(in_folder("rules.v4"), WS_TUPLE_IPV4, &options);
    MUST(rules != NULL);
    uint32_t ban, numbers[2], actions[2];
    OK(ws_rules_insert_label(rules, "src=192.0.2.66 priority=1", "BAN", &ban));
    ws_rule_reader *reader = ws_rules_reader(rules);
    MUST(reader != NULL);
    const ws_tuple4 packets[2] = {
        {IPV4(192, 0, 2, 7), IPV4(198, 51, 100, 1), 40000, 443, 6},
        {IPV4(192, 0, 2, 66), IPV4(198, 51, 100, 1), 40000, 443, 6},
    };
    OK(ws_classify_bulk(reader, packets, numbers, actions, 2));
    MUST(strcmp(ws_rule_reader_label(reader, actions[0]), "ACCEPT") == 0);
    MUST(numbers[1] == ban && strcmp(ws_rule_reader_label(reader, actions[1]), "BAN") == 0);
    OK(ws_rules_save(rules, in_folder("rules.img")));
    OK(ws_rules_remove(rules, ban));
    OK(ws_rules_forget_labels(rules));
    OK(ws_classify_bulk(reader, packets, numbers, actions, 2));
    MUST(strcmp(ws_rule_reader_label(reader, actions[1]), "ACCEPT") == 0);
    OK(ws_rules_load(rules, in_folder("rules.v4")));
    ws_rule_reader *saved = ws_rule_reader_open(in_folder("rules.img"), WS_TUPLE_IPV4);
    MUST(saved != NULL);
    OK(ws_classify_bulk(saved, packets, numbers, actions, 2));
    MUST(numbers[1] == ban && strcmp(ws_rule_reader_label(saved, actions[1]), "BAN") == 0);
    ws_rule_reader_free(saved);
    ws_rule_reader_free(reader);
    ws_rules_free(rules);

    /* Another chain, also when the file is loaded again. */
    const ws_options forward = {.size = sizeof forward, .chain = "FORWARD"};
    size_t len;
    rules = ws_rules_open(in_folder("rules.v4"), WS_TUPLE_IPV4, &forward);
    MUST(rules != NULL);
    OK(ws_rules_load(rules, in_folder("rules.v4")));
    OK(ws_rules_len(rules, &len));
    MUST(len == 1); /* the policy */
    ws_rules_free(rules);

    ws_rules *six = ws_rules_new(WS_TUPLE_IPV6, NULL);
    MUST(six != NULL);
    uint32_t number;
    OK(ws_rules_insert(six, "dst=2001:db8::/32 proto=udp action=5", &number));
    MUST(number == 1);
    const ws_rule_change changes[3] = {
        {"proto=tcp action=6", 0}, /* a new rule */
        {"dst=2001:db8::/32 proto=udp action=7", 1}, /* in the place of rule 1 */
        {NULL, 9}, /* a rule that is not there */
    };
    OK(ws_rules_apply(six, changes, 3));
    size_t count;
    OK(ws_rules_len(six, &count));
    MUST(count == 2);
    reader = ws_rules_reader(six);
    const ws_tuple6 packets6[2] = {
        {.dst = {0x20, 0x01, 0x0d, 0xb8}, .dport = 53, .proto = 17},
        {.dst = {0x20, 0x01, 0x0d, 0xb8}, .dport = 53, .proto = 1},
    };
    OK(ws_classify6_bulk(reader, packets6, numbers, actions, 2));
    MUST(numbers[0] == 1 && actions[0] == 7 && numbers[1] == 0 && actions[1] == 0);
    ws_rule_reader_free(reader);
    ws_rules_free(six);
}

/* A list of domains, with its exceptions. */
static void domains(void)
{
    write_file("filter.txt", "||ads.example^\n@@||good.ads.example^\n");
    ws_names *list = ws_names_open(in_folder("filter.txt"), NULL);
    MUST(list != NULL);
    size_t count;
    OK(ws_names_len(list, &count));
    MUST(count == 2);
    OK(ws_names_save(list, in_folder("filter.img")));
    ws_name_reader *readers[2] = {ws_names_reader(list), ws_name_reader_open(in_folder("filter.img"))};
    for (int at = 0; at < 2; at++) {
        MUST(readers[at] != NULL);
        const char *const asked[3] = {"www.ads.example", "good.ads.example", "example"};
        uint64_t found[3];
        OK(ws_lookup_names_bulk(readers[at], WS_NAME_FORM_DOMAIN, asked, found, 3));
        MUST(strcmp(ws_name_reader_label(readers[at], found[0]), "blocked") == 0);
        MUST(found[1] == 0 && found[2] == 0);
        ws_name_reader_free(readers[at]);
    }
    MUST(ws_names_insert_label(list, WS_NAME_FORM_DOMAIN, "more.example", "blocked") == WS_STATUS_FAILED);
    ws_names_free(list);
}

/* Registrable domains, by the Public Suffix List. */
static void suffixes(void)
{
    write_file("suffixes.dat", "// ===BEGIN ICANN DOMAINS===\nuk\nco.uk\n*.ck\n!www.ck\n// ===END ICANN DOMAINS===\n");
    ws_names *list = ws_names_open(in_folder("suffixes.dat"), NULL);
    MUST(list != NULL);
    ws_name_reader *reader = ws_names_reader(list);
    const char *const domains[5] = {"www.Example.co.uk", "co.uk", "a.b.shop.ck", "a.www.ck", "192.0.2.1"};
    const char *const right[5] = {"example.co.uk", "", "b.shop.ck", "www.ck", ""};
    char value[32];
    size_t length;
    for (int at = 0; at < 5; at++) {
        OK(ws_name_reader_registrable(reader, domains[at], value, sizeof value, &length));
        MUST(strcmp(value, right[at]) == 0 && length == strlen(right[at]));
    }
    OK(ws_name_reader_registrable(reader, domains[0], value, 4, &length));
    MUST(strcmp(value, "exa") == 0 && length == 13);
    OK(ws_name_reader_registrable(reader, domains[0], NULL, 0, &length));
    MUST(length == 13);
    MUST(ws_name_reader_registrable(reader, "a..uk", value, sizeof value, &length) == WS_STATUS_ARGUMENT);
    ws_name_reader_free(reader);
    ws_names_free(list);
    ws_names *names = ws_names_new(NULL);
    reader = ws_names_reader(names);
    MUST(ws_name_reader_registrable(reader, domains[0], value, sizeof value, &length) != WS_STATUS_OK);
    ws_name_reader_free(reader);
    ws_names_free(names);
}

/* Two sources as one table, and the fields of its labels. */
static void merged(void)
{
    static char sources[2][4200];
    write_file("own.csv", "prefix,site,rack\n10.1.0.0/16,Kiel,7\n");
    write_file("asn.txt", "10.0.0.0/8 64496\n");
    snprintf(sources[0], sizeof sources[0], "own:site,rack=%s", in_folder("own.csv"));
    snprintf(sources[1], sizeof sources[1], "asn=%s", in_folder("asn.txt"));
    const char *const named[2] = {sources[0], sources[1]};
    ws_table *table = ws_table_open_merged(named, 2, NULL);
    MUST(table != NULL);
    ws_reader *reader = ws_table_reader(table);
    uint64_t next_hop;
    OK(ws_lookup(reader, IPV4(10, 1, 2, 3), &next_hop));
    char value[8];
    size_t length;
    OK(ws_reader_label_field(reader, next_hop, "asn", value, sizeof value, &length));
    MUST(length == 5 && strcmp(value, "64496") == 0);
    OK(ws_reader_label_field(reader, next_hop, "site", value, 3, &length));
    MUST(length == 4 && strcmp(value, "Ki") == 0);
    OK(ws_lookup(reader, IPV4(10, 2, 2, 3), &next_hop));
    OK(ws_reader_label_field(reader, next_hop, "site", NULL, 0, &length));
    MUST(length == 0);
    MUST(ws_reader_label_field(reader, next_hop, "colour", value, sizeof value, &length) == WS_STATUS_ARGUMENT);
    MUST(strstr(ws_last_error(), "no field colour; there are asn, rack, site") != NULL);
    ws_reader_free(reader);
    ws_table_free(table);
}

int main(int arguments, char **argument)
{
    if (arguments != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argument[0]);
        return 2;
    }
    folder = argument[1];
    numbers();
    labels();
    names();
    domains();
    suffixes();
    merged();
    rules();
    printf("wirespeed %s: all answers are right\n", ws_version());
    return 0;
}
