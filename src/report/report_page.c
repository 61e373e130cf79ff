/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The page: one file that needs no other. Its text comes from the build (the files in page/ and the
 * charting library), with a line in it where the data go.
 */
#include "report/report.h"

/* What tools/embed.cmake has made, as it is: half a megabyte of numbers in C would take compilers
 * and checkers minutes. */
__asm__(".pushsection .rodata\n"
        ".hidden crn_page_text\n"
        ".global crn_page_text\n"
        "crn_page_text: .incbin \"" CAIRN_PAGE "\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char crn_page_text[] __attribute__((visibility("hidden")));

static const char place[] = "@DATA@";

/* JSON may stand in a page as it is, but for what would end the script that it stands in. */
static void put_safe(const char *text, crn_buf *page)
{
    static const char less[] = "\\u003c";
    for (const char *end; (end = strchr(text, '<')) != NULL; text = end + 1) {
        crn_put_bytes(page, text, (size_t)(end - text));
        crn_put_bytes(page, less, sizeof less - 1);
    }
    crn_put_bytes(page, text, strlen(text));
}

cairn_status crn_report_page(json_t *data, crn_buf *page)
{
    const char *hole = strstr(crn_page_text, place), *rest = hole + sizeof place - 1;
    char *text = json_dumps(data, JSON_COMPACT);
    CRN_FAIL_IF(!text, CAIRN_ENOMEM, "no memory for the page");
    crn_put_bytes(page, crn_page_text, (size_t)(hole - crn_page_text));
    put_safe(text, page);
    crn_put_bytes(page, rest, strlen(rest));
    free(text);
    return crn_buf_status(page);
}
