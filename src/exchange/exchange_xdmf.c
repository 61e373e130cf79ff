/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writing XDMF. A moment is a collection of grids, one for each shape that arrays have; a series is
 * a collection of moments. No mark waits until such files are durable: they help to look at marks,
 * and 'cairn export' makes them again.
 */
#include "exchange/exchange.h"

#include <inttypes.h>
#include <stdarg.h>

static const char head[] = "<?xml version=\"1.0\"?>\n<Xdmf Version=\"3.0\">\n<Domain>\n";
static const char tail[] = "</Domain>\n</Xdmf>\n";
static const char close_grid[] = "</Grid>\n";
static const char reference[] = "Format=\"HDF\">"; /* what stands before the name of a file */

/* --- text --------------------------------------------------------------------------------- */

static void put(crn_buf *b, const char *text)
{
    crn_put_bytes(b, text, strlen(text));
}

static void put_format(crn_buf *b, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    put(b, text);
}

/* Text that may hold any characters. */
static void put_safe(crn_buf *b, const char *text)
{
    for (; *text; text++) {
        if (*text == '&')
            put(b, "&amp;");
        else if (*text == '<')
            put(b, "&lt;");
        else if (*text == '>')
            put(b, "&gt;");
        else if (*text == '"')
            put(b, "&quot;");
        else
            crn_put_u8(b, (unsigned char)*text < ' ' ? '?' : (uint8_t)*text);
    }
}

static void put_dims(crn_buf *b, const crn_array *a)
{
    for (uint32_t d = 0; d < a->ndims; d++)
        put_format(b, "%s%" PRIu64, d ? " " : "", a->dims[d]);
}

/* --- grids -------------------------------------------------------------------------------- */

/* The value of a key in an array's lines, up to the line's end; NULL when there is none. */
static const char *find_line(const crn_array *a, const char *key, size_t *ret_n)
{
    const size_t nkey = strlen(key);
    for (const char *line = a->spec.attributes; line && *line;) {
        const size_t n = strcspn(line, "\n");
        if (n > nkey && line[nkey] == '=' && memcmp(line, key, nkey) == 0) {
            *ret_n = n - nkey - 1;
            return line + nkey + 1;
        }
        line += n + (line[n] == '\n');
    }
    return NULL;
}

/* How XDMF calls the type of a number; NULL for what is none. */
static const char *number_type(const char *type)
{
    if (strncmp(type, "float", 5) == 0)
        return "Float";
    if (strncmp(type, "int", 3) == 0)
        return "Int";
    return strncmp(type, "uint", 4) == 0 ? "UInt" : NULL;
}

static bool is_field(const crn_array *a)
{
    bool empty = false;
    for (uint32_t d = 0; d < a->ndims; d++)
        empty |= a->dims[d] == 0;
    return !a->by_rank && !empty && (a->ndims == 2 || a->ndims == 3) && number_type(a->spec.type);
}

/* Is a text of n bytes as many numbers as there are dimensions? */
static bool are_numbers(const char *text, size_t n, uint32_t ndims)
{
    char copy[256];
    const char *at = copy;
    uint32_t found = 0;
    if (n >= sizeof copy)
        return false;
    memcpy(copy, text, n);
    copy[n] = 0;
    for (char *end; *at; at = end, found++) {
        (void)strtod(at, &end);
        end += strspn(end, " ");
        if (end == at || (*end && end[-1] != ' '))
            return false;
    }
    return found == ndims && !strpbrk(copy, "xXnN"); /* neither hexadecimal nor infinite */
}

/* Numbers for all dimensions, as the program gave them, or the same for each. */
static void put_numbers(crn_buf *b, const crn_array *a, const char *key, const char *otherwise)
{
    size_t n = 0;
    const char *text = find_line(a, key, &n);
    put_format(b, "<DataItem Dimensions=\"%u\" Format=\"XML\">", a->ndims);
    if (text && are_numbers(text, n, a->ndims))
        crn_put_bytes(b, text, n);
    else
        for (uint32_t d = 0; d < a->ndims; d++)
            put_format(b, "%s%s", d ? " " : "", otherwise);
    put(b, "</DataItem>");
}

static bool same_lines(const crn_array *a, const crn_array *b, const char *key)
{
    size_t na = 0, nb = 0;
    const char *x = find_line(a, key, &na), *y = find_line(b, key, &nb);
    return na == nb && (na == 0 || memcmp(x, y, na) == 0);
}

static bool same_grid(const crn_array *a, const crn_array *b)
{
    return a->ndims == b->ndims && memcmp(a->dims, b->dims, a->ndims * sizeof *a->dims) == 0 &&
           same_lines(a, b, "spacing") && same_lines(a, b, "origin");
}

static void put_field(crn_buf *b, const crn_array *a, const char *h5)
{
    put(b, "<Attribute Name=\"");
    put_safe(b, a->spec.name);
    put(b, "\" AttributeType=\"Scalar\" Center=\"Node\">\n<DataItem Dimensions=\"");
    put_dims(b, a);
    put_format(b, "\" NumberType=\"%s\" Precision=\"%u\" %s", number_type(a->spec.type),
               a->spec.item, reference);
    put_safe(b, h5);
    put(b, ":/");
    put_safe(b, a->spec.name);
    put(b, "</DataItem>\n</Attribute>\n");
}

/* The grid that array i is the first of. */
static void put_grid(crn_buf *b, const crn_frame *f, size_t i, const char *h5)
{
    const crn_array *a = &f->array.at[i];
    put(b, "<Grid Name=\"");
    put_dims(b, a);
    put_format(b,
               "\" GridType=\"Uniform\">\n<Topology TopologyType=\"%uDCoRectMesh\" Dimensions=\"",
               a->ndims);
    put_dims(b, a);
    put_format(b, "\"/>\n<Geometry GeometryType=\"%s\">",
               a->ndims == 3 ? "ORIGIN_DXDYDZ" : "ORIGIN_DXDY");
    put_numbers(b, a, "origin", "0");
    put_numbers(b, a, "spacing", "1");
    put(b, "</Geometry>\n");
    for (size_t k = i; k < f->array.n; k++)
        if (is_field(&f->array.at[k]) && same_grid(a, &f->array.at[k]))
            put_field(b, &f->array.at[k], h5);
    put(b, close_grid);
}

static bool is_first_of_grid(const crn_frame *f, size_t i)
{
    if (!is_field(&f->array.at[i]))
        return false;
    for (size_t k = 0; k < i; k++)
        if (is_field(&f->array.at[k]) && same_grid(&f->array.at[k], &f->array.at[i]))
            return false;
    return true;
}

/* --- files -------------------------------------------------------------------------------- */

cairn_status crn_xdmf_write(int dirfd, const char *name, const crn_frame *f, const char *h5)
{
    crn_buf b = {0};
    size_t ngrids = 0;
    put(&b, head);
    put_format(&b,
               "<Grid Name=\"mark %" PRIu64 "\" GridType=\"Collection\" "
               "CollectionType=\"Spatial\">\n<Time Value=\"%" PRIu64 "\"/>\n",
               f->version, f->version);
    for (size_t i = 0; i < f->array.n; i++) {
        if (!is_first_of_grid(f, i))
            continue;
        put_grid(&b, f, i, h5);
        ngrids++;
    }
    put(&b, close_grid);
    put(&b, tail);
    cairn_status rc = ngrids == 0 ? CAIRN_NOTHING : crn_buf_status(&b);
    if (rc == CAIRN_OK)
        rc = crn_file_put(dirfd, name, b.at, b.n);
    crn_buf_done(&b);
    return rc;
}

void crn_xdmf_begin(crn_buf *b)
{
    put(b, head);
    put(b, "<Grid Name=\"run\" GridType=\"Collection\" CollectionType=\"Temporal\">\n");
}

/* A file that Cairn wrote, up to the tail, which ends the text; free *ret. */
static cairn_status read_back(int dirfd, const char *name, char **ret)
{
    void *data;
    size_t n;
    CRN_TRY(crn_file_slurp(dirfd, name, CRN_XDMF_BYTES_MAX, &data, &n));
    char *end = strstr(data, tail);
    if (strncmp(data, head, sizeof head - 1) != 0 || !end) {
        free(data);
        return crn_fail(CAIRN_ECORRUPT, "'%s' is not as Cairn writes it", name);
    }
    *end = 0;
    *ret = data;
    return CAIRN_OK;
}

cairn_status crn_xdmf_reopen(crn_buf *b, int dirfd, const char *name)
{
    char *text;
    CRN_TRY(read_back(dirfd, name, &text));
    const size_t n = strlen(text), end = sizeof close_grid - 1;
    crn_put_bytes(b, text, n > end ? n - end : 0);
    free(text);
    return crn_buf_status(b);
}

cairn_status crn_xdmf_add(crn_buf *b, int dirfd, const char *name, const char *before)
{
    char *data;
    CRN_TRY(read_back(dirfd, name, &data));
    const char *text = data + sizeof head - 1;
    for (const char *at; (at = strstr(text, reference)); text = at) {
        at += sizeof reference - 1;
        crn_put_bytes(b, text, (size_t)(at - text));
        put_safe(b, before);
    }
    put(b, text);
    free(data);
    return crn_buf_status(b);
}

cairn_status crn_xdmf_end(crn_buf *b, int dirfd, const char *name)
{
    put(b, close_grid);
    put(b, tail);
    CRN_TRY(crn_buf_status(b));
    return crn_file_put(dirfd, name, b->at, b->n);
}
