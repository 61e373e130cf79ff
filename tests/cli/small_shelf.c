/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes a shelf for the scripts: small_shelf SHELF puts three states, one of them pinned; with
 * another word behind it a value of m0002 is another, and there is one state more.
 */
#include <stdio.h>

#include <cairn/state.h>

static int put(cairn_shelf *s, const char *key, uint64_t version, double more)
{
    static double grid[40][50], own[1000];
    for (int i = 0; i < 2000; i++)
        grid[i / 50][i % 50] = i + (double)version;
    grid[5][6] += more;
    const cairn_field field[] = {
        {.name = "grid",
         .data = grid,
         .type = CAIRN_FLOAT64,
         .ndims = 2,
         .global = {40, 50},
         .count = {40, 50}},
        {.name = "own", .data = own, .type = CAIRN_FLOAT64, .count = {1000}}};
    return cairn_state_put(s, key, version, NULL, field, 2);
}

int main(int argc, char **argv)
{
    cairn_shelf *s;
    const bool other = argc == 3;
    if (argc < 2 || cairn_shelf_open(argv[1], NULL, &s) < 0)
        return 2;
    const bool good = put(s, "m0002", 17, other ? 0.5 : 0) == CAIRN_OK &&
                      put(s, "m0001", 17, 0) == CAIRN_OK && put(s, "m0001", 3, 0) == CAIRN_OK &&
                      cairn_state_pin(s, "m0001", 3) == CAIRN_OK &&
                      (!other || put(s, "m0009", 1, 0) == CAIRN_OK);
    if (!good)
        fprintf(stderr, "small_shelf: %s\n", cairn_error_text());
    cairn_shelf_close(s);
    return good ? 0 : 1;
}
