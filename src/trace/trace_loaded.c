/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The programs and libraries that call sites lie in: where each is, and its build id, so that
 * 'cairn trace' finds the very file again when it looks for source lines. Looked at once for each.
 */
#include "trace/trace.h"

#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct sought {
    uintptr_t start;
    char *path; /* owned; NULL: not found */
    crn_module *ret;
} sought;

static char *path_of(const char *name)
{
    char text[PATH_MAX], *path = NULL;
    if (*name)
        return realpath(name, NULL);
    const ssize_t n = readlink("/proc/self/exe", text, sizeof text - 1);
    if (n > 0 && crn_strndup(text, (size_t)n, &path) < 0)
        return NULL;
    return path;
}

/* The build id among the notes of a segment. */
static void find_build(const unsigned char *at, size_t n, size_t align, crn_module *m)
{
    const size_t mask = align == 8 ? 7 : 3;
    while (n >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) h;
        memcpy(&h, at, sizeof h);
        const size_t name = sizeof h, desc = (name + h.n_namesz + mask) & ~mask;
        const size_t end = (desc + h.n_descsz + mask) & ~mask;
        if (desc + h.n_descsz > n)
            return;
        if (h.n_type == NT_GNU_BUILD_ID && h.n_namesz == 4 && memcmp(at + name, "GNU", 4) == 0 &&
            h.n_descsz <= CRN_BUILD_ID) {
            memcpy(m->build, at + desc, h.n_descsz);
            m->nbuild = (uint8_t)h.n_descsz;
            return;
        }
        at += CRN_MIN(end, n);
        n -= CRN_MIN(end, n);
    }
}

static int look_at(struct dl_phdr_info *info, size_t nbytes, void *arg)
{
    sought *s = arg;
    bool inside = false;
    (void)nbytes;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        const uintptr_t start = info->dlpi_addr + h->p_vaddr;
        inside |= h->p_type == PT_LOAD && s->start < start + h->p_memsz &&
                  s->start >= (start & ~(uintptr_t)4095);
    }
    for (int i = 0; inside && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (h->p_type == PT_NOTE && s->ret->nbuild == 0)
            find_build((const unsigned char *)info->dlpi_addr + h->p_vaddr, h->p_memsz, h->p_align,
                       s->ret);
    }
    if (inside)
        s->path = path_of(info->dlpi_name);
    return inside;
}

static bool is_known(const char *name)
{
    uint32_t number;
    crn_rec_lock();
    const bool known = crn_tables_string(&crn_rec.tables, name, &number) < 0 ||
                       crn_tables_has_module(&crn_rec.tables, number);
    crn_rec_unlock();
    return known;
}

/* The loader is asked without our lock: a thread that loads a library may be about to ask for it.
 */
void crn_module_note(const char *name, uintptr_t start)
{
    crn_module m = {0};
    sought s = {.start = start, .ret = &m};
    if (is_known(name) || !dl_iterate_phdr(look_at, &s))
        return;
    crn_rec_lock();
    if (crn_tables_string(&crn_rec.tables, name, &m.name) == CAIRN_OK &&
        !crn_tables_has_module(&crn_rec.tables, m.name) &&
        crn_tables_string(&crn_rec.tables, s.path ? s.path : "", &m.path) == CAIRN_OK)
        (void)crn_tables_module(&crn_rec.tables, m); /* without it there are addresses only */
    crn_rec_grown();
    crn_rec_unlock();
    free(s.path);
}
