/* Calls that are refused, each with its reason, and calls by many threads. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wirespeed.h"

#define NET(a, b) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16)

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            const char *why = ws_last_error();                                                     \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, why ? why : "-");   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* A call that is refused for a reason that has these words. */
#define REFUSED(call, expected, words)                                                             \
    do {                                                                                           \
        MUST((call) == (expected));                                                                \
        MUST(strstr(ws_last_error(), words) != NULL);                                              \
    } while (0)

#define WRONG(call, words) REFUSED(call, WS_STATUS_ARGUMENT, words)
#define FAILS(call, words) REFUSED(call, WS_STATUS_FAILED, words)
#define NONE(call, words) REFUSED(call, NULL, words)

static void pointers(ws_table *table, ws_reader *reader)
{
    uint32_t ips[4] = {0};
    uint64_t found[4];
    uint8_t depths[4];
    WRONG(ws_lookup_bulk(NULL, ips, found, 4), "reader is NULL");
    WRONG(ws_lookup_bulk(reader, NULL, found, 4), "addresses is NULL");
    WRONG(ws_lookup_bulk(reader, ips, NULL, 4), "next_hops is NULL");
    WRONG(ws_lookup_bulk(reader, ips, found, SIZE_MAX), "fit no memory");
    WRONG(ws_lookup_bulk(reader, (uint32_t *)(void *)((char *)ips + 1), found, 2), "not aligned");
    WRONG(ws_lookup_bulk32(reader, ips, ips + 1, 3), "overlap");
    WRONG(ws_lookup_prefix_bulk(reader, ips, found, (uint8_t *)found, 4), "next_hops and depths overlap");
    FAILS(ws_lookup_prefix_bulk(reader, ips, found, depths, 4), "prefix_lookups");
    MUST(ws_lookup_bulk(reader, NULL, NULL, 0) == WS_STATUS_OK);
    WRONG(ws_lookup(reader, 0, NULL), "next_hop is NULL");
    MUST(ws_reader_label(NULL, 1) == NULL && ws_reader_label(reader, UINT64_MAX) == NULL);
    WRONG(ws_table_len(table, NULL), "count is NULL");
    WRONG(ws_table_apply(table, NULL, 1), "changes is NULL");
    NONE(ws_table_reader(NULL), "table is NULL");
    NONE(ws_table_open(NULL, NULL), "path is NULL");
    NONE(ws_table_open("\xff", NULL), "path is not UTF-8 from byte 0");
    NONE(ws_table_open("/no/such/file", NULL), "/no/such/file");
    NONE(ws_reader_open("/dev/null"), "/dev/null");
    ws_table_free(NULL);
    ws_reader_free(NULL);
    ws_names_free(NULL);
    ws_name_reader_free(NULL);
    ws_rules_free(NULL);
    ws_rule_reader_free(NULL);
}

static void values(ws_table *table)
{
    const ws_options old = {.size = 8}, unknown = {.size = sizeof unknown, .engine = "best"};
    NONE(ws_table_new(&old), "options.size is 8");
    NONE(ws_table_new(&unknown), "best");
    WRONG(ws_table_insert4(table, NET(10, 1), 8, 1), "10.1.0.0/8");
    WRONG(ws_table_insert4(table, NET(10, 0), 33, 1), "depth 33");
    WRONG(ws_table_insert4(table, NET(10, 0), 8, 0), "10.0.0.0/8 has no next hop");
    WRONG(ws_table_insert4(table, NET(10, 0), 8, (uint64_t)1 << 32), "4294967296 is too large");
    FAILS(ws_table_insert4(table, NET(10, 0), 8, UINT32_MAX), "4294967295");
    WRONG(ws_table_insert6(table, NULL, 8, 1), "address is NULL");
    WRONG(ws_table_insert_label(table, "10.0.0.0", "a"), "not a prefix");
    ws_route changes[2] = {{.address = {10}, .next_hop = 1, .family = 4, .depth = 8},
                           {.address = {10}, .next_hop = 1, .family = 5, .depth = 8}};
    size_t count = 9;
    WRONG(ws_table_apply(table, changes, 2), "element 1: family 5");
    NONE(ws_table_from_routes(changes, 2, NULL), "element 1: family 5");
    MUST(ws_table_len(table, &count) == WS_STATUS_OK && count == 0); /* all or none */
    MUST(ws_table_apply(table, changes, 1) == WS_STATUS_OK);
    FAILS(ws_table_insert_label(table, "10.0.0.0/8", "a"), "numbers of the caller's own");

    ws_table *labelled = ws_table_new(NULL);
    MUST(ws_table_insert_label(labelled, "10.0.0.0/8", "a") == WS_STATUS_OK);
    FAILS(ws_table_insert4(labelled, NET(10, 0), 8, 2), "2 is the number of no label");
    changes[1].family = 4;
    changes[1].next_hop = 7;
    FAILS(ws_table_apply(labelled, changes, 2), "7 is the number of no label");
    MUST(ws_table_insert4(labelled, NET(11, 0), 8, 1) == WS_STATUS_OK);
    ws_table_free(labelled);
}

static void names_and_rules(void)
{
    const ws_options prefixes = {.size = sizeof prefixes, .prefix_lookups = 1};
    NONE(ws_names_new(&prefixes), "prefix_lookups is not for a table of names");
    NONE(ws_rules_new(WS_TUPLE_IPV4, &prefixes), "prefix_lookups is not for a table of rules");
    NONE(ws_rules_new(5, NULL), "5 is no ws_tuple");
    const ws_options fact = {.size = sizeof fact, .assume = "weather=fine"};
    NONE(ws_rules_new(WS_TUPLE_IPV4, &fact), "weather");
    const ws_options chain = {.size = sizeof chain, .chain = "INPUT"};
    NONE(ws_names_new(&chain), "options.chain is not for a table of names");
    const ws_options range = {.size = sizeof range, .range_columns = "from"};
    NONE(ws_table_new(&range), "options.range_columns: range-columns=from: a range has two columns");
    const ws_options column = {.size = sizeof column, .name_column = "site"};
    NONE(ws_table_new(&column), "options.name_column is not for a table of addresses");

    ws_names *names = ws_names_new(NULL);
    ws_name_reader *reader = ws_names_reader(names);
    const char *const asked[2] = {"parc.com", "a..b"};
    const char *const missing[2] = {"parc.com", NULL};
    uint64_t found[2];
    WRONG(ws_names_insert(names, 9, "/com", 1), "9 is no ws_name_form");
    WRONG(ws_names_insert(names, WS_NAME_FORM_COMPONENTS, "com", 1), "com");
    FAILS(ws_names_insert(names, WS_NAME_FORM_COMPONENTS, "/com", 0), "/com");
    WRONG(ws_lookup_names_bulk(reader, WS_NAME_FORM_DOMAIN, asked, found, 2), "element 1: \"a..b\"");
    WRONG(ws_lookup_names_bulk(reader, WS_NAME_FORM_DOMAIN, missing, found, 2), "element 1: name is NULL");
    ws_name_reader_free(reader);
    ws_names_free(names);

    const char *const sources[2] = {"asn=/nosuch", "nosuch"};
    NONE(ws_table_open_merged(sources, 0, NULL), "needs a source");
    NONE(ws_table_open_merged(sources, 2, NULL), "element 1: \"nosuch\": a source is NAME=FILE");
    NONE(ws_table_open_merged(sources, 1, NULL), "/nosuch");
    NONE(ws_table_open_merged(NULL, 1, NULL), "sources is NULL");

    ws_rules *rules = ws_rules_new(WS_TUPLE_IPV4, NULL);
    ws_rule_reader *rule_reader = ws_rules_reader(rules);
    const ws_tuple6 packet = {.proto = 6};
    const ws_rule_change nothing = {NULL, 0};
    uint32_t number, action;
    WRONG(ws_classify6_bulk(rule_reader, &packet, &number, &action, 1), "the rules are for IPv4");
    WRONG(ws_rules_insert(rules, "colour=red", &number), "colour=red");
    WRONG(ws_rules_insert_label(rules, "proto=tcp action=3", "a", &number), "an action, and a label");
    WRONG(ws_rules_apply(rules, &nothing, 1), "element 0: a change without rule and number");
    ws_rule_reader_free(rule_reader);
    ws_rules_free(rules);
}

enum { THREADS = 3, ROUNDS = 200 };

static ws_table *shared;
static ws_reader *of_all;

/* Looks up while others change: a batch is of one state. */
static void *look_up(void *number)
{
    const uint32_t ips[2] = {NET(10, 1), NET(10, 200)};
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t found[2];
        MUST(ws_lookup_bulk(of_all, ips, found, 2) == WS_STATUS_OK);
        MUST(found[0] == found[1] && found[0] != 0);
        MUST(ws_table_insert4(shared, NET(10, 0), 8, (uint64_t)(uintptr_t)number) == WS_STATUS_OK);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t running[THREADS];
    shared = ws_table_new(NULL);
    MUST(ws_table_insert4(shared, NET(10, 0), 8, 9) == WS_STATUS_OK);
    of_all = ws_table_reader(shared);
    for (uintptr_t n = 0; n < THREADS; n++)
        MUST(pthread_create(&running[n], NULL, look_up, (void *)(n + 1)) == 0);
    for (int n = 0; n < THREADS; n++)
        MUST(pthread_join(running[n], NULL) == 0);
    ws_reader_free(of_all);
    ws_table_free(shared);
}

int main(void)
{
    MUST(ws_last_error() == NULL);
    ws_table *table = ws_table_new(NULL);
    MUST(table != NULL);
    ws_reader *reader = ws_table_reader(table);
    pointers(table, reader);
    values(table);
    names_and_rules();
    threads();
    ws_reader_free(reader);
    ws_table_free(table);
    return 0;
}
