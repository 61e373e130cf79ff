/* SPDX-License-Identifier: BSD-3-Clause */
#include "traceview/traceview_dwarf.h"

#if CRN_WITH_LIBDW
#include <dwarf.h>
#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <pthread.h>
#include <unistd.h>

#define DWARF_CALLS(X)                                                                             \
    X(dwfl_begin)                                                                                  \
    X(dwfl_end)                                                                                    \
    X(dwfl_report_offline)                                                                         \
    X(dwfl_report_end)                                                                             \
    X(dwfl_module_build_id)                                                                        \
    X(dwfl_module_getelf)                                                                          \
    X(dwfl_module_addrdie)                                                                         \
    X(dwfl_module_addrname)                                                                        \
    X(dwfl_module_getsrc)                                                                          \
    X(dwfl_lineinfo)                                                                               \
    X(dwfl_standard_find_debuginfo)                                                                \
    X(dwfl_offline_section_address)                                                                \
    X(dwarf_child)                                                                                 \
    X(dwarf_siblingof)                                                                             \
    X(dwarf_haspc)                                                                                 \
    X(dwarf_getscopes_die)                                                                         \
    X(dwarf_diecu)                                                                                 \
    X(dwarf_getsrcfiles)                                                                           \
    X(dwarf_filesrc)                                                                               \
    X(dwarf_tag)                                                                                   \
    X(dwarf_diename)                                                                               \
    X(dwarf_attr)                                                                                  \
    X(dwarf_attr_integrate)                                                                        \
    X(dwarf_formref_die)                                                                           \
    X(dwarf_formudata) X(elf_getphdrnum) X(gelf_getphdr)
#define MEMBER(name) __typeof__(name) *name;
static struct {
    DWARF_CALLS(MEMBER)
} lib;
#define NAME(name) #name,
static const char *const names[] = {DWARF_CALLS(NAME) NULL};
static crn_library library = {CRN_LIBDW_LIBRARY, names, (void **)&lib, PTHREAD_MUTEX_INITIALIZER,
                              false};

enum { SCOPES_MAX = 64 }; /* within each other */

struct crn_dwarf {
    Dwfl_Callbacks callbacks;
    Dwfl *dwfl;
    Dwfl_Module *module;
    char *search;
    Dwarf_Addr bias, start; /* of the first page that is loaded */
};

cairn_status crn_dwarf_load(void)
{
    return crn_library_load(&library);
}

void crn_dwarf_close(crn_dwarf *d)
{
    if (!d)
        return;
    if (d->dwfl)
        lib.dwfl_end(d->dwfl);
    free(d->search);
    free(d);
}

/* ---- opening ---- */

static cairn_status find_start(crn_dwarf *d, const char *path)
{
    size_t n = 0;
    GElf_Phdr h;
    Elf *elf = lib.dwfl_module_getelf(d->module, &d->bias);
    d->start = UINT64_MAX;
    CRN_FAIL_IF(!elf || lib.elf_getphdrnum(elf, &n) != 0, CAIRN_ENOTFOUND, "'%s' has no segments",
                path);
    for (size_t i = 0; i < n; i++)
        if (lib.gelf_getphdr(elf, (int)i, &h) && h.p_type == PT_LOAD)
            d->start = CRN_MIN(d->start, h.p_vaddr & ~(GElf_Addr)4095);
    CRN_FAIL_IF(d->start == UINT64_MAX, CAIRN_ENOTFOUND, "'%s' has no segments", path);
    return CAIRN_OK;
}

static cairn_status check_build(crn_dwarf *d, const char *path, const crn_module *module)
{
    const unsigned char *build;
    GElf_Addr at;
    const int n = lib.dwfl_module_build_id(d->module, &build, &at);
    CRN_FAIL_IF(n != module->nbuild || memcmp(build, module->build, module->nbuild) != 0,
                CAIRN_EMISMATCH, "'%s' is not the build that ran", path);
    return CAIRN_OK;
}

static cairn_status open_module(crn_dwarf *d, const char *path, const crn_module *module)
{
    d->callbacks = (Dwfl_Callbacks){.find_debuginfo = lib.dwfl_standard_find_debuginfo,
                                    .section_address = lib.dwfl_offline_section_address,
                                    .debuginfo_path = d->search ? &d->search : NULL};
    d->dwfl = lib.dwfl_begin(&d->callbacks);
    CRN_FAIL_IF(!d->dwfl, CAIRN_ENOMEM, "no memory for the lines of '%s'", path);
    d->module = lib.dwfl_report_offline(d->dwfl, path, path, -1);
    CRN_FAIL_IF(!d->module || lib.dwfl_report_end(d->dwfl, NULL, NULL) != 0, CAIRN_ENOTFOUND,
                "'%s' is no program or library", path);
    CRN_TRY(check_build(d, path, module));
    return find_start(d, path);
}

cairn_status crn_dwarf_open(const char *path, const crn_module *module, const char *search,
                            crn_dwarf **ret)
{
    crn_dwarf *d;
    cairn_status rc;
    CRN_FAIL_IF(access(path, R_OK) != 0, CAIRN_ENOTFOUND, "'%s' cannot be read", path);
    CRN_FAIL_IF(module->nbuild == 0, CAIRN_EMISMATCH,
                "'%s' has no build id (the linker's --build-id), so nobody knows whether it is "
                "what ran",
                path);
    CRN_TRY(crn_alloc(&d, 1));
    /* the first entry of libdw's default is the folder of the file itself */
    if (search && asprintf(&d->search, "+:.debug:/usr/lib/debug:%s", search) < 0) {
        d->search = NULL;
        rc = crn_fail(CAIRN_ENOMEM, "no memory for the lines of '%s'", path);
        goto out;
    }
    CRN_TRY_OUT(rc, open_module(d, path, module));
    *ret = d;
    return CAIRN_OK;
out:
    crn_dwarf_close(d);
    return rc;
}

/* ---- names ---- */

/* What an inlined function, or one that is defined apart from its class, is declared as. */
static Dwarf_Die declared(Dwarf_Die die)
{
    static const unsigned links[] = {DW_AT_abstract_origin, DW_AT_specification};
    Dwarf_Attribute attr;
    Dwarf_Die next;
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        if (lib.dwarf_attr(&die, links[i], &attr) && lib.dwarf_formref_die(&attr, &next))
            die = next;
    return die;
}

static bool is_scope(int tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_class_type || tag == DW_TAG_structure_type ||
           tag == DW_TAG_module;
}

/* "solver::Grid::exchange"; of Fortran "halo::exchange", the module's procedure. */
static bool put_function(crn_buf *b, Dwarf_Die *die)
{
    Dwarf_Die own = declared(*die), *scope = NULL;
    const char *name = lib.dwarf_diename(&own);
    if (!name)
        return false;
    const int n = lib.dwarf_getscopes_die(&own, &scope);
    for (int i = n - 1; i > 0; i--) {
        const char *outer =
            is_scope(lib.dwarf_tag(&scope[i])) ? lib.dwarf_diename(&scope[i]) : NULL;
        if (outer)
            crn_put_text(b, "%s::", outer);
    }
    free(scope);
    crn_put_text(b, "%s", name);
    return true;
}

/* Names of C++ and Rust, without debugging information: by the C++ library, if it is there. */
static void put_symbol(crn_buf *b, const char *symbol)
{
    typedef char *demangle_fn(const char *, char *, size_t *, int *);
    void *handle = strncmp(symbol, "_Z", 2) == 0 ? dlopen("libstdc++.so.6", RTLD_NOW) : NULL;
    demangle_fn *demangle = handle ? (demangle_fn *)dlsym(handle, "__cxa_demangle") : NULL;
    int status;
    char *plain = demangle ? demangle(symbol, NULL, NULL, &status) : NULL;
    crn_put_text(b, "%s", plain ? plain : symbol);
    free(plain);
    if (handle)
        dlclose(handle);
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void put_line(crn_buf *b, const char *file, int line)
{
    if (file && line > 0)
        crn_put_text(b, " (%s:%d)", last_part(file), line);
    else if (file)
        crn_put_text(b, " (%s)", last_part(file));
}

static unsigned number_of(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attr;
    Dwarf_Word n = 0;
    return lib.dwarf_attr(die, name, &attr) && lib.dwarf_formudata(&attr, &n) == 0 ? (unsigned)n
                                                                                   : 0;
}

/* Where an inlined function was called. */
static const char *call_file(Dwarf_Die *die)
{
    Dwarf_Die cu;
    Dwarf_Files *files;
    size_t n;
    const unsigned file = number_of(die, DW_AT_call_file);
    if (!lib.dwarf_diecu(die, &cu, NULL, NULL) || lib.dwarf_getsrcfiles(&cu, &files, &n) != 0 ||
        file >= n)
        return NULL;
    return lib.dwarf_filesrc(files, file, NULL, NULL);
}

/* The functions around an address, innermost first, down to the one that was not inlined. */
static bool put_scopes(crn_buf *b, Dwarf_Die *scope, int n, const char *file, int line)
{
    const size_t before = b->n;
    for (int i = 0; i < n; i++) {
        const int tag = lib.dwarf_tag(&scope[i]);
        if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
            continue;
        const size_t start = b->n;
        if (start > before)
            crn_put_text(b, " < ");
        if (!put_function(b, &scope[i])) {
            b->n = start;
            break;
        }
        put_line(b, file, line);
        if (tag == DW_TAG_subprogram)
            break;
        file = call_file(&scope[i]);
        line = (int)number_of(&scope[i], DW_AT_call_line);
    }
    return b->n > before;
}

/* The innermost piece of code at an address, below die: what holds functions has no addresses. */
static bool find_innermost(Dwarf_Die die, Dwarf_Addr at, Dwarf_Die *ret, int depth)
{
    Dwarf_Die child;
    for (int more = lib.dwarf_child(&die, &child); more == 0 && depth < SCOPES_MAX;
         more = lib.dwarf_siblingof(&child, &child)) {
        const int tag = lib.dwarf_tag(&child);
        if (is_scope(tag)) {
            if (find_innermost(child, at, ret, depth + 1))
                return true;
        } else if ((tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine ||
                    tag == DW_TAG_lexical_block) &&
                   lib.dwarf_haspc(&child, at) == 1) {
            *ret = child;
            find_innermost(child, at, ret, depth + 1);
            return true;
        }
    }
    return false;
}

/* It and what it is part of, innermost first, to be freed. (dwarf_getscopes gives what surrounds
 * the definition of an inlined function instead, and nothing of a Fortran module.) */
static int scopes_at(Dwarf_Die *cu, Dwarf_Addr at, Dwarf_Die **ret)
{
    Dwarf_Die innermost;
    if (!cu || !find_innermost(*cu, at, &innermost, 0))
        return 0;
    return lib.dwarf_getscopes_die(&innermost, ret);
}

bool crn_dwarf_put(crn_dwarf *d, uint64_t off, crn_buf *b)
{
    /* the call is what stands before the address that it returns to */
    const Dwarf_Addr at = d->bias + d->start + off - 1;
    Dwarf_Addr bias = 0;
    Dwarf_Die *cu = lib.dwfl_module_addrdie(d->module, at, &bias), *scope = NULL;
    Dwfl_Line *at_line = lib.dwfl_module_getsrc(d->module, at);
    int line = 0;
    const char *file = at_line ? lib.dwfl_lineinfo(at_line, NULL, &line, NULL, NULL, NULL) : NULL;
    const int n = scopes_at(cu, at - bias, &scope);
    const bool named = n > 0 && put_scopes(b, scope, n, file, line);
    free(scope);
    if (named)
        return true;
    const char *symbol = lib.dwfl_module_addrname(d->module, at);
    if (!symbol)
        return false;
    put_symbol(b, symbol);
    put_line(b, file, line);
    return true;
}

#else

cairn_status crn_dwarf_load(void)
{
    return crn_fail(CAIRN_EUNSUPPORTED, "this Cairn was built without libdw, so call sites are "
                                        "addresses (-DCAIRN_WITH_LIBDW=ON)");
}

cairn_status crn_dwarf_open(const char *path, const crn_module *module, const char *search,
                            crn_dwarf **ret)
{
    (void)path, (void)module, (void)search, (void)ret;
    return crn_dwarf_load();
}

void crn_dwarf_close(crn_dwarf *d)
{
    (void)d;
}

bool crn_dwarf_put(crn_dwarf *d, uint64_t off, crn_buf *b)
{
    (void)d, (void)off, (void)b;
    return false;
}

#endif
